import type { Dialect } from '../database/dialect.ts'
import type { Query, Read } from '../database/reads/query.ts'
import { integer, jsonObject, type SerializedRecord } from '../database/sql/json-object.ts'
import { MAX_PAGE_BYTES, type Page } from '../database/sql/keyset-pagination.ts'
import type { EventPage } from '../events/queries.ts'
import { pageEtag } from '../http/responses.ts'
import { MAX_BATCH_BYTES, type StoredFacts } from './batches.ts'
import type { RequestFilters } from './schemas.ts'

/** A journal that is on. */
export interface StoredJournal { version: number, keep: number, requests: number, bytes: number, dropped: number }

const REQUESTS = '(j.last_id - j.first_id + 1)'

const journalRecord = (dialect: Dialect): string => jsonObject(dialect, {
  keep: integer('j.keep'),
  requests: integer(REQUESTS),
  bytes: integer('j.bytes'),
  dropped: integer('j.dropped')
})

export function journalEtag ({ version, requests, bytes, dropped }: Omit<StoredJournal, 'keep'>): string {
  return `"${version}-${requests}-${bytes}-${dropped}"`
}

const journalByAccount: Query<{ account: number }, StoredJournal & { record: string }> = {
  sql: (dialect) => `
    SELECT i.ord, j.version, j.keep, ${REQUESTS} AS requests, j.bytes, j.dropped, ${journalRecord(dialect)} AS record
    FROM ${dialect.jsonRows('i', { ord: 'ordinality', account: 'bigint' })}
    JOIN journals j ON j.account_id = i.account AND j.keep IS NOT NULL`
}

/** @returns `undefined` when the journal is off */
export async function findJournal (read: Read, account: number): Promise<SerializedRecord | undefined> {
  const row = await read(journalByAccount, { account })
  return row && { record: row.record, etag: journalEtag(row) }
}

/**
 * Maximum size of a record: the request and the response have bodies of 16 KB, of which each byte can become an escape
 * of six, and their heads.
 */
const MAX_RECORD_BYTES = 262_144

export interface BatchInput {
  account: number
  /** Of a request. */
  id: number
  /** Whether the texts of records are needed. */
  texts: boolean
}

export interface BatchRow {
  /** The ids of the oldest request in the journal, and of the newest that it ever had. Null if it was never on. */
  oldest: bigint | number | null
  newest: bigint | number | null
  facts: string | null
  data: string | null
}

/** The batch with a request, the oldest one if the request is older, the newest one if it is newer. */
export const batchQuery: Query<BatchInput, BatchRow> = {
  // The facts of a request are shorter than its record.
  maxRowBytes: 2 * (MAX_BATCH_BYTES + MAX_RECORD_BYTES),
  sql: (dialect) => `
    SELECT i.ord, j.first_id AS oldest, j.last_id AS newest, b.facts, CASE WHEN i.texts THEN b.data END AS data
    FROM ${dialect.jsonRows('i', { ord: 'ordinality', account: 'bigint', id: 'bigint', texts: 'boolean' })}
    JOIN accounts a ON a.id = i.account AND a.deleted_at IS NULL
    LEFT JOIN journals j ON j.account_id = i.account
    LEFT JOIN recorded_batches b ON b.account_id = i.account AND b.first_id = (
      SELECT max(x.first_id) FROM recorded_batches x
      WHERE x.account_id = i.account AND x.first_id <= CASE WHEN i.id > j.first_id THEN i.id ELSE j.first_id END)`
}

/** Reads the batch with a request. @returns `undefined` when the account was deleted */
export type ReadBatch = (id: number) => Promise<BatchRow | undefined>

export function batchReader (read: Read, account: number, texts = true): ReadBatch {
  return async (id) => await read(batchQuery, { account, id, texts })
}

/** Requests of a batch, in ascending order. */
interface Requests {
  /** The id of the newest request in the journal. */
  newest: number
  facts: StoredFacts[]
  /** Returns the record of one of `facts`, as JSON. */
  textOf: (facts: StoredFacts) => string
}

/** Returns the requests of a batch from an id on that the journal still has. */
function requestsOf (row: BatchRow | undefined, from: number): Requests {
  const all = JSON.parse(row?.facts ?? '[]') as StoredFacts[]
  const texts = row?.data?.split('\n') ?? []
  const oldest = Math.max(from, Number(row?.oldest ?? 0))
  return {
    newest: Number(row?.newest ?? 0),
    facts: all.filter(({ id }) => id >= oldest),
    textOf ({ id, attemptOf, pauseMs }) {
      const link = JSON.stringify({ id, attemptOf, pauseMs })
      return `${link.slice(0, -1)},${texts[id - all[0]!.id]!.slice(1)}`
    }
  }
}

/** Returns the requests of a journal from an id on, batch by batch, up to those that it has now. */
export async function * batchesFrom (read: ReadBatch, from: number): AsyncGenerator<Requests> {
  let end = Infinity
  let id = from
  while (id <= end) {
    const requests = requestsOf(await read(id), id)
    const last = requests.facts.at(-1)?.id
    if (last === undefined) return
    yield requests
    end = Math.min(end, requests.newest)
    id = last + 1
  }
}

export interface RequestPage { limit: number, after: number, filters: RequestFilters }

/** Returns a page of the requests that equal all filters. */
export async function requestPage (read: ReadBatch, { limit, after, filters }: RequestPage): Promise<Page> {
  const records: string[] = []
  let bytes = 0
  let last = after
  for await (const { facts, textOf } of batchesFrom(read, after + 1)) {
    for (const request of facts) {
      if (!isWanted(request, filters)) continue
      if (records.length === limit || bytes >= MAX_PAGE_BYTES) return { records: `[${records.join()}]`, next: last }
      const text = textOf(request)
      records.push(text)
      bytes += text.length
      last = request.id
    }
  }
  return { records: `[${records.join()}]`, next: null }
}

/** Returns the newest requests, newest first, as the JSON text of an array. */
export async function newestRequests (read: ReadBatch, limit: number): Promise<string> {
  const records: string[] = []
  let id = Number.MAX_SAFE_INTEGER
  while (records.length < limit) {
    const { facts, textOf } = requestsOf(await read(id), 0)
    const older = facts.filter((request) => request.id <= id)
    if (older.length === 0) break
    records.push(...older.reverse().slice(0, limit - records.length).map(textOf))
    id = older.at(-1)!.id - 1
  }
  return `[${records.join()}]`
}

/** Tells whether a request equals all filters. */
export function isWanted (request: Partial<Record<keyof RequestFilters, unknown>>, filters: RequestFilters): boolean {
  return Object.entries(filters).every(([name, value]) => request[name as keyof RequestFilters] === value)
}

export async function findRequest (read: ReadBatch, id: number): Promise<SerializedRecord | undefined> {
  const { facts: [found], textOf } = requestsOf(await read(id), id)
  if (found?.id !== id) return undefined
  const record = textOf(found)
  return { record, etag: pageEtag(record) }
}

/**
 * Returns requests as text/event-stream, in the form that event streams read. A stream never expires: it continues with
 * the next request that the journal still has.
 */
export async function streamRequests (read: Read, account: number, after: number): Promise<EventPage | undefined> {
  const row = await read(batchQuery, { account, id: after + 1, texts: true })
  if (row === undefined) return undefined
  const { newest, facts, textOf } = requestsOf(row, after + 1)
  const messages = facts.map((request) => (
    { facts: request, text: `id: ${request.id}\nevent: request\ndata: ${textOf(request)}\n\n` }
  ))
  const text = messages.map((message) => message.text).join('')
  // Without requests after the position, all up to the newest were deleted.
  return { newest, oldest: 0, text, last: facts.at(-1)?.id ?? newest, messages }
}
