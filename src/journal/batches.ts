import type { Transaction } from '../database/group-commit/transaction.ts'
import { bytesOfTexts } from '../database/unit-of-work/stored-bytes.ts'
import { recordedBatches } from '../generated/tables.ts'
import { getOrAdd } from '../database/get-or-add.ts'
import { linkAttempts, type Attempt } from './rules.ts'
import type { RequestFacts } from './verdict.ts'

/** Number of characters of the hash that attempts of one request share: 96 bits. */
export const HASH_LENGTH = 16

/**
 * A batch takes more requests until it has so many, or so many bytes. Who wants one of them reads all: with 64, that
 * takes no longer than the request around it, and a row costs little beside its requests.
 */
const MAX_REQUESTS = 64
export const MAX_BATCH_BYTES = 65_536

/** A new attempt takes its place among this many stored ones: no transaction takes noticeably longer. */
const MAX_STORED = 100

/** What the journal keeps of a request beside its text. */
export interface StoredFacts extends RequestFacts {
  /** In real time, in ms since 1970. */
  endedMs: number
}

/** A request whose response has ended, before it has an id. */
export interface EndedRequest {
  /** The record without `id` and its link to other attempts, as a JSON object. */
  text: string
  facts: Omit<StoredFacts, 'id' | 'attemptOf' | 'pauseMs' | 'askedMs'>
  /** What attempts of one request have in common: `HASH_LENGTH` characters. */
  attemptHash: string
}

/** A stored batch, without what it has of its requests. */
export interface StoredBatch { firstId: number, bytes: number, hashes: string }

/** What a transaction knows of a journal whose row it has locked. */
export interface LockedBatches {
  accountId: number
  /** The ids of the oldest request that it has, and of the newest that it ever had. */
  firstId: number
  lastId: number
  /** Oldest first. The oldest can have requests below `firstId`. */
  batches: StoredBatch[]
}

/** A batch with its requests. Only the one that gets more is loaded with `data`. */
interface LoadedBatch extends StoredBatch { facts: StoredFacts[], factsText: string, data: string | null }

/** Returns the batches of a journal, oldest first. */
export async function storedBatches ({ dialect, query }: Transaction, account: number): Promise<StoredBatch[]> {
  return await query<StoredBatch>(`
    SELECT b.first_id AS "firstId", b.bytes, b.hashes FROM recorded_batches b
    WHERE b.account_id = (SELECT i.account FROM ${dialect.jsonRows('i', { account: 'bigint' })})
    ORDER BY b.first_id`, [{ account }])
}

/**
 * Adds requests to a journal, in the order in which their responses ended. Links them to those that began before them,
 * and those that began later to the new ones: an attempt is recorded late if its response took longer, or if another
 * process recorded the others first. One that began before the last `MAX_STORED` is linked to none.
 */
export async function addRequests (tx: Transaction, journal: LockedBatches, requests: EndedRequest[]): Promise<void> {
  const { accountId: account, batches } = journal
  const newest = batches.at(-1)
  const open = newest !== undefined && hasRoom(newest) ? newest : undefined
  const hashes = requests.map(({ attemptHash }) => attemptHash)
  const loaded = await loadBatches(tx, account, batchesWith(new Set(hashes), journal), open)
  const added = requests.map(({ facts }): StoredFacts => ({ id: ++journal.lastId, ...facts }))
  const linked = linkAll(loaded, journal.firstId, added, hashes)
  const created = fill(loaded.find(({ data }) => data !== null), added, requests)
  const changed = loaded.filter(({ facts }) => facts.some((request) => linked.has(request)))
  for (const batch of [...changed, ...created]) setTexts(batch)
  await updateBatches(tx, account, changed)
  await tx.insert(recordedBatches, created.map(({ firstId, bytes, hashes, factsText, data }) =>
    ({ accountId: account, firstId, bytes, hashes, facts: factsText, data: data! })))
  const known = new Map(loaded.map((batch) => [batch.firstId, batch]))
  journal.batches = [...batches.map((batch) => known.get(batch.firstId) ?? batch), ...created]
}

function hasRoom ({ hashes, bytes }: StoredBatch): boolean {
  return hashes.length < MAX_REQUESTS * HASH_LENGTH && bytes < MAX_BATCH_BYTES
}

function hashesOf (hashes: string): string[] {
  const starts = Array.from({ length: hashes.length / HASH_LENGTH }, (_, i) => i * HASH_LENGTH)
  return starts.map((start) => hashes.slice(start, start + HASH_LENGTH))
}

/** Returns the batches that have the last `MAX_STORED` attempts with each of some hashes. */
function batchesWith (wanted: Set<string>, { batches, firstId: oldest }: LockedBatches): StoredBatch[] {
  const counts = new Map<string, number>()
  return batches.toReversed().filter(({ firstId, hashes }) => {
    const own = hashesOf(hashes).filter((hash, i) => firstId + i >= oldest && wanted.has(hash))
    const isNeeded = own.some((hash) => (counts.get(hash) ?? 0) < MAX_STORED)
    for (const hash of own) counts.set(hash, (counts.get(hash) ?? 0) + 1)
    return isNeeded
  })
}

async function loadBatches (
  { dialect, query }: Transaction, account: number, attempts: StoredBatch[], open: StoredBatch | undefined
): Promise<LoadedBatch[]> {
  const ids = new Set([...attempts, ...open === undefined ? [] : [open]].map(({ firstId }) => firstId))
  if (ids.size === 0) return []
  const rows = await query<Omit<LoadedBatch, 'facts'>>(`
    SELECT b.first_id AS "firstId", b.bytes, b.hashes, b.facts AS "factsText", CASE WHEN i."isOpen" THEN b.data END AS data
    FROM ${dialect.jsonRows('i', { account: 'bigint', firstId: 'bigint', isOpen: 'boolean' })}
    JOIN recorded_batches b ON b.account_id = i.account AND b.first_id = i."firstId"`,
  [...ids].map((firstId) => ({ account, firstId, isOpen: firstId === open?.firstId })))
  return rows.map((row) => ({ ...row, facts: JSON.parse(row.factsText) as StoredFacts[] }))
}

/**
 * Links new attempts to those of the loaded batches, from the oldest that the journal still has.
 *
 * @returns the new attempts, and those whose link has changed
 */
function linkAll (loaded: LoadedBatch[], oldest: number, added: StoredFacts[], hashes: string[]): Set<Attempt> {
  const groups = new Map<string, { stored: Attempt[], added: Attempt[] }>()
  for (const [i, hash] of hashes.entries()) {
    getOrAdd(groups, hash, () => ({ stored: [], added: [] })).added.push(added[i]!)
  }
  for (const batch of loaded) {
    for (const [i, hash] of hashesOf(batch.hashes).entries()) {
      if (batch.firstId + i >= oldest) groups.get(hash)?.stored.push(batch.facts[i]!)
    }
  }
  const linked = new Set<Attempt>(added)
  for (const { stored, added } of groups.values()) {
    const from = stored.length < MAX_STORED ? 0 : Math.min(...stored.map(({ startedMs }) => startedMs))
    const changed = linkAttempts([...stored, ...added.filter(({ startedMs }) => startedMs >= from)])
    for (const attempt of changed) linked.add(attempt)
  }
  return linked
}

/** Puts new requests into the batch that has room, and into new ones. @returns the new ones */
function fill (open: LoadedBatch | undefined, added: StoredFacts[], requests: EndedRequest[]): LoadedBatch[] {
  const created: LoadedBatch[] = []
  let batch = open
  for (const [i, facts] of added.entries()) {
    const { text, attemptHash } = requests[i]!
    if (batch === undefined || !hasRoom(batch)) {
      batch = { firstId: facts.id, bytes: 0, hashes: '', facts: [], factsText: '', data: '' }
      created.push(batch)
    }
    batch.data += batch.facts.length === 0 ? text : `\n${text}`
    batch.facts.push(facts)
    batch.hashes += attemptHash
    batch.bytes += text.length
  }
  return created
}

/** Sets the text of a batch's facts, and its size. */
function setTexts (batch: LoadedBatch): void {
  const { hashes, data, factsText: before } = batch
  batch.factsText = JSON.stringify(batch.facts)
  if (data === null) batch.bytes += Buffer.byteLength(batch.factsText) - Buffer.byteLength(before)
  else batch.bytes = bytesOfTexts(hashes, batch.factsText, data)
}

async function updateBatches (
  { dialect, execute }: Transaction, account: number, changed: LoadedBatch[]
): Promise<void> {
  await execute(`
    UPDATE recorded_batches
    SET bytes = i.bytes, hashes = i.hashes, facts = i.facts, data = coalesce(i.data, recorded_batches.data)
    FROM ${dialect.jsonRows('i', {
      account: 'bigint', firstId: 'bigint', bytes: 'bigint', hashes: 'text', facts: 'text', data: 'text'
    })} WHERE recorded_batches.account_id = i.account AND recorded_batches.first_id = i."firstId"`,
  changed.map(({ firstId, bytes, hashes, factsText, data }) =>
    ({ account, firstId, bytes, hashes, facts: factsText, data })))
}

/** Maximum size of a journal, in bytes. */
const MAX_JOURNAL_BYTES = 16_777_216

/** Removes the oldest requests of a journal until it is within its limits, and the batches that have no others. */
export async function trimBatches (tx: Transaction, journal: LockedBatches, keep: number): Promise<void> {
  const { batches, lastId } = journal
  let bytes = sizeOf(batches)
  let lost = 0
  const firstIdOf = (i: number): number => batches[i]?.firstId ?? lastId + 1
  journal.firstId = Math.max(journal.firstId, lastId - keep + 1)
  while (lost < batches.length && (firstIdOf(lost + 1) <= journal.firstId || bytes > MAX_JOURNAL_BYTES)) {
    bytes -= batches[lost++]!.bytes
  }
  if (lost === 0) return
  journal.batches = batches.slice(lost)
  journal.firstId = Math.max(journal.firstId, firstIdOf(lost))
  await deleteBatches(tx, journal)
}

/** Removes all requests of a journal. */
export async function emptyBatches (tx: Transaction, journal: LockedBatches): Promise<void> {
  Object.assign(journal, { batches: [], firstId: journal.lastId + 1 })
  await deleteBatches(tx, journal)
}

/** Deletes the batches of which the journal has no request any more. */
async function deleteBatches (
  { dialect, execute }: Transaction, { accountId: account, batches, lastId }: LockedBatches
): Promise<void> {
  await execute(`
    WITH i AS (SELECT i.account, i.first FROM ${dialect.jsonRows('i', { account: 'bigint', first: 'bigint' })})
    DELETE FROM recorded_batches
    WHERE account_id = (SELECT i.account FROM i) AND first_id < (SELECT i.first FROM i)`,
  [{ account, first: batches[0]?.firstId ?? lastId + 1 }])
}

export function sizeOf (batches: StoredBatch[]): number {
  return batches.reduce((sum, { bytes }) => sum + bytes, 0)
}
