import type { Command, CommandResult } from '../database/group-commit/command.ts'
import { distinct, type Transaction } from '../database/group-commit/transaction.ts'
import { pageQuery, type Page } from '../database/sql/keyset-pagination.ts'
import { bytesOfTexts } from '../database/unit-of-work/stored-bytes.ts'
import { recordedRequests } from '../generated/tables.ts'
import { checkPreconditions, type Conditions } from '../http/conditional-requests.ts'
import { pageEtag } from '../http/responses.ts'
import { linkNewAttempts, type NewAttempt } from './attempts.ts'
import { JournalNotFound } from './errors.ts'
import { journalEtag, requestList, type StoredJournal } from './queries.ts'
import type { Journal } from './schemas.ts'
import type { StoredFacts } from './verdict.ts'

/** Maximum size of a journal, in bytes. */
const MAX_JOURNAL_BYTES = 16_777_216

/** A request whose response has ended, before it has an id. */
export interface EndedRequest {
  /** The record without `id` and its link to other attempts, as a JSON object. */
  text: string
  facts: StoredFacts
  /** What attempts of one request have in common. */
  attemptHash: string
  isKeyed: boolean
  endedMs: number
}

export interface RecordInput {
  account: number
  /** In the order in which their responses ended. */
  requests: EndedRequest[]
  /** The number of requests before them that are lost. */
  dropped: number
}

interface LockedJournal extends Omit<StoredJournal, 'keep'> {
  account: number
  keep: number | null
  /** Its size as the database has it. */
  storedBytes: number
}

/** Records requests, unless the journal is off. The journal is locked, so ids ascend in the order of commits. */
export const recordRequests: Command<RecordInput, undefined> = {
  name: 'recordRequests',
  runsAlone: 'with its kind',
  async runAll (tx, inputs) {
    const journals = await lockJournals(tx, inputs)
    const isOn = ({ account }: { account: number }): boolean => typeof journals.get(account)?.keep === 'number'
    const wanted = inputs.filter(isOn)
    const requests = wanted.flatMap(({ account, requests }) => requests.map((request) => ({ account, request })))
    const ids = await tx.allocateIds(recordedRequests, requests.length)
    const added = requests.map(({ account, request }, i) => attemptOf(account, request, ids[i]!))
    await linkNewAttempts(tx, added)
    await tx.insert(recordedRequests, added)
    for (const { accountId, bytes } of added) {
      const journal = journals.get(accountId)!
      journal.requests++
      journal.bytes += bytes
    }
    for (const { account, dropped } of wanted) journals.get(account)!.dropped += dropped
    const changed = [...journals.values()].filter(isOn)
    for (const journal of changed) await trim(tx, journal)
    await saveJournals(tx, changed)
    return inputs.map((input) => ({ record: undefined, changes: isOn(input) ? { requests: [input.account] } : {} }))
  }
}

async function lockJournals (
  { dialect, query }: Transaction, accounts: Array<{ account: number }>
): Promise<Map<number, LockedJournal>> {
  const rows = await query<LockedJournal>(`
    SELECT j.account_id AS account, j.version, j.keep, j.requests, j.bytes, j.bytes AS "storedBytes", j.dropped
    FROM journals j
    WHERE j.account_id IN (SELECT i.account FROM ${dialect.jsonRows('i', { account: 'bigint' })})
    ORDER BY j.account_id ${dialect.forUpdate}`, distinct(accounts.map(({ account }) => ({ account }))))
  return new Map(rows.map((row) => [row.account, row]))
}

/** Returns a new row, which is not linked yet. */
function attemptOf (
  account: number, { text, facts, attemptHash, isKeyed, endedMs }: EndedRequest, id: number
): NewAttempt {
  const attemptKey = `${account} ${attemptHash}`
  const { operation, status = null, keyId, run = null, startedMs, retryAfterMs } = facts
  const stored = JSON.stringify(facts)
  return {
    id,
    accountId: account,
    operation,
    status,
    keyId,
    run,
    attemptKey,
    startedMs,
    endedMs,
    attemptOf: null,
    pauseMs: null,
    askedMs: null,
    bytes: bytesOfTexts(operation, run, attemptKey, stored, text),
    facts: stored,
    data: text,
    isKeyed,
    retryAfterMs
  }
}

/** Number of the oldest requests that one search for bytes finds. */
const TRIM_STEP = 500

/** Deletes the oldest requests until the journal is within its limits. */
async function trim ({ dialect, query, execute }: Transaction, journal: LockedJournal): Promise<void> {
  const { account, keep } = journal
  const isTooLarge = (): boolean => journal.requests > keep! || journal.bytes > MAX_JOURNAL_BYTES
  while (isTooLarge()) {
    const limit = Math.max(journal.requests - keep!, journal.bytes > MAX_JOURNAL_BYTES ? TRIM_STEP : 0)
    const { where, orderBy } = dialect.keyset([['r.account_id', '(SELECT i.account FROM i)']], 'r.id', '0', false)
    const oldest = await query<{ id: number, bytes: number }>(`
      WITH i AS (
        SELECT i.account, i."limit" AS max_count FROM ${dialect.jsonRows('i', { account: 'bigint', limit: 'bigint' })})
      SELECT r.id, r.bytes FROM recorded_requests r WHERE ${where} ORDER BY ${orderBy}
      LIMIT (SELECT i.max_count FROM i)`, [{ account, limit }])
    let last = 0
    for (const { id, bytes } of oldest) {
      if (!isTooLarge()) break
      journal.requests--
      journal.bytes -= bytes
      last = id
    }
    await execute(`
      WITH i AS (SELECT i.account, i.last FROM ${dialect.jsonRows('i', { account: 'bigint', last: 'bigint' })})
      DELETE FROM recorded_requests
      WHERE account_id = (SELECT i.account FROM i) AND id <= (SELECT i.last FROM i)`, [{ account, last }])
  }
}

async function saveJournals (
  { dialect, execute, storedBytes }: Transaction, journals: LockedJournal[]
): Promise<void> {
  for (const journal of journals) {
    storedBytes.add(journal.account, journal.bytes - journal.storedBytes)
    journal.storedBytes = journal.bytes
  }
  await execute(`
    UPDATE journals SET version = i.version, keep = i.keep, requests = i.requests, bytes = i.bytes, dropped = i.dropped
    FROM ${dialect.jsonRows('i', {
      account: 'bigint', version: 'bigint', keep: 'bigint', requests: 'bigint', bytes: 'bigint', dropped: 'bigint'
    })} WHERE journals.account_id = i.account`, journals)
}

export interface JournalChange { account: number, keep: number, conditions: Conditions }

/** Turns a journal on, or changes how many requests it keeps. */
export const putJournal: Command<JournalChange, Journal> = {
  name: 'putJournal',
  runsAlone: 'with its kind',
  run: put
}

async function put (tx: Transaction, { account, keep, conditions }: JournalChange): Promise<CommandResult<Journal>> {
  const { dialect, execute } = tx
  // With the row of a journal that is off there is something to lock.
  await execute(`
    INSERT INTO journals (account_id) SELECT i.account FROM ${dialect.jsonRows('i', { account: 'bigint' })}
    WHERE true ON CONFLICT (account_id) DO NOTHING`, [{ account }])
  const journal = (await lockJournals(tx, [{ account }])).get(account)!
  const failed = checkPreconditions(conditions, journal.keep === null ? undefined : journalEtag(journal))
  if (failed !== undefined) return failed
  const isChanged = journal.keep !== keep
  if (isChanged) {
    Object.assign(journal, { keep, version: journal.version + 1 })
    await trim(tx, journal)
    await saveJournals(tx, [journal])
  }
  const { requests, bytes, dropped } = journal
  const record = { keep, requests, bytes, dropped }
  return { record, etag: journalEtag(journal), ...isChanged && { changes: { lab: [account] } } }
}

/** Turns a journal off and deletes its requests. */
export const deleteJournal: Command<{ account: number, conditions: Conditions }, undefined> = {
  name: 'deleteJournal',
  runsAlone: 'with its kind',
  async runAll (tx, inputs) {
    const journals = await lockJournals(tx, inputs)
    const ended = new Set<LockedJournal>()
    const results = inputs.map(({ account, conditions }): CommandResult<undefined> => {
      const journal = journals.get(account)
      if (journal === undefined || journal.keep === null) return new JournalNotFound()
      const failed = checkPreconditions(conditions, journalEtag(journal))
      if (failed !== undefined) return failed
      Object.assign(journal, { keep: null, version: journal.version + 1, dropped: 0 })
      ended.add(journal)
      return { record: undefined, changes: { lab: [account] } }
    })
    await empty(tx, [...ended])
    return results
  }
}

async function empty (tx: Transaction, journals: LockedJournal[]): Promise<void> {
  const { dialect, execute } = tx
  await execute(`
    DELETE FROM recorded_requests WHERE account_id IN (
      SELECT i.account FROM ${dialect.jsonRows('i', { account: 'bigint' })})`, journals)
  for (const journal of journals) Object.assign(journal, { requests: 0, bytes: 0 })
  await saveJournals(tx, journals)
}

interface DeleteRequests {
  account: number
  conditions: Conditions
  /** Returns the `Link` of the first page of the list, whose entity tag the conditions refer to. */
  link: (next: Page['next']) => string
}

/** Number of requests on the first page of the list. */
const PAGE_SIZE = 20

/** Deletes the requests of a journal, which stays on. */
export const deleteRequests: Command<DeleteRequests, undefined> = {
  name: 'deleteRequests',
  runsAlone: true,
  run: async (tx, { account, conditions, link }) => {
    const journals = await lockJournals(tx, [{ account }])
    const first = { limit: PAGE_SIZE, descending: false, after: undefined, filters: {} }
    const [query, input] = pageQuery(requestList, first, account)
    const [page] = await tx.query<Page>(query.sql(tx.dialect), [input])
    const failed = checkPreconditions(conditions, pageEtag(page!.records, link(page!.next)))
    if (failed !== undefined) return failed
    await empty(tx, [...journals.values()])
    return { record: undefined }
  }
}
