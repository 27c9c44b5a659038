import type { Dialect } from '../database/dialect.ts'
import type { Query, Read } from '../database/reads/query.ts'
import { integer, jsonObject, type SerializedRecord } from '../database/sql/json-object.ts'
import { lastWithin, type ListDefinition } from '../database/sql/keyset-pagination.ts'
import { listRecords } from '../database/sql/record-queries.ts'
import type { EventPage } from '../events/queries.ts'
import { pageEtag } from '../http/responses.ts'

/** A journal that is on. */
export interface StoredJournal { version: number, keep: number, requests: number, bytes: number, dropped: number }

const journalRecord = (dialect: Dialect): string => jsonObject(dialect, {
  keep: integer('j.keep'),
  requests: integer('j.requests'),
  bytes: integer('j.bytes'),
  dropped: integer('j.dropped')
})

export function journalEtag ({ version, requests, bytes, dropped }: Omit<StoredJournal, 'keep'>): string {
  return `"${version}-${requests}-${bytes}-${dropped}"`
}

const journalByAccount: Query<{ account: number }, Record<keyof StoredJournal, bigint> & { record: string }> = {
  sql: (dialect) => `
    SELECT i.ord, j.version, j.keep, j.requests, j.bytes, j.dropped, ${journalRecord(dialect)} AS record
    FROM ${dialect.jsonRows('i', { ord: 'ordinality', account: 'bigint' })}
    JOIN journals j ON j.account_id = i.account AND j.keep IS NOT NULL`
}

/** @returns `undefined` when the journal is off */
export async function findJournal (read: Read, account: number): Promise<SerializedRecord | undefined> {
  const row = await read(journalByAccount, { account })
  if (row === undefined) return undefined
  const { version, requests, bytes, dropped, record } = row
  const etag = journalEtag({
    version: Number(version), requests: Number(requests), bytes: Number(bytes), dropped: Number(dropped)
  })
  return { record, etag }
}

/**
 * Maximum size of a record: the request and the response have bodies of 16 KB, of which each byte can become an escape
 * of six, and their heads.
 */
const MAX_RECORD_BYTES = 262_144

/**
 * Returns an SQL expression for a stored JSON object with the members that are columns, because they can change:
 * `'{"id":' || r.id || coalesce(',"attemptOf":' || r.attempt_of, '') || ',' || substr(r.facts, 2)`.
 */
function withColumns (object: string, columns: { [member: string]: string }): string {
  const members = Object.entries(columns).map(([name, column]) => `coalesce(',"${name}":' || ${column}, '')`)
  return `'{"id":' || r.id || ${members.join(' || ')} || ',' || substr(${object}, 2)`
}

const LINK = { attemptOf: 'r.attempt_of', pauseMs: 'r.pause_ms' }
const RECORD = withColumns('r.data', LINK)
const FACTS = withColumns('r.facts', { ...LINK, askedMs: 'r.asked_ms' })

/** The rows of an account are few enough that filters need no index of their own. */
export const requestList: ListDefinition = {
  name: 'recorded requests',
  from: 'recorded_requests r',
  record: () => RECORD,
  recordBytes: { stored: 'r.bytes', serialized: () => 'r.bytes', max: MAX_RECORD_BYTES },
  filters: {
    operation: { type: 'text', column: 'r.operation' },
    status: { type: 'bigint', column: 'r.status' },
    keyId: { type: 'bigint', column: 'r.key_id' },
    run: { type: 'text', column: 'r.run' }
  },
  indexes: [{ name: 'recorded_requests_account_id_id_idx', columns: ['r.account_id'], position: 'r.id' }]
}

export const listRequests = listRecords(requestList)

/** The same requests, each with what checks compare. */
export const listFacts = listRecords({ ...requestList, name: 'facts of requests', record: () => FACTS })

const requestById: Query<{ account: number, id: number }, { record: string }> = {
  maxRowBytes: MAX_RECORD_BYTES,
  sql: (dialect) => `
    SELECT i.ord, ${RECORD} AS record
    FROM ${dialect.jsonRows('i', { ord: 'ordinality', account: 'bigint', id: 'bigint' })}
    JOIN recorded_requests r ON r.id = i.id AND r.account_id = i.account`
}

export async function findRequest (read: Read, account: number, id: number): Promise<SerializedRecord | undefined> {
  const row = await read(requestById, { account, id })
  return row && { record: row.record, etag: pageEtag(row.record) }
}

/** Limits of one chunk of a stream. */
const CHUNK_REQUESTS = 200
const CHUNK_BYTES = 65_536

interface StreamRow { newest: bigint, text: string | null, last: bigint | null }

const streamQuery: Query<{ account: number, after: number }, StreamRow> = {
  maxRowBytes: CHUNK_BYTES + MAX_RECORD_BYTES,
  sql: (dialect) => {
    const { where, orderBy } = dialect.keyset([['r.account_id', 'i.account']], 'r.id', 'i.after', false)
    const last = lastWithin(CHUNK_BYTES, false, `
      SELECT r.id AS position, r.bytes FROM recorded_requests r WHERE ${where} ORDER BY ${orderBy} LIMIT ${CHUNK_REQUESTS}`)
    return `
      WITH i AS MATERIALIZED (
        SELECT i.*, ${last} AS last
        FROM ${dialect.jsonRows('i', { ord: 'ordinality', account: 'bigint', after: 'bigint' })})
      SELECT i.ord, i.last,
        coalesce((SELECT max(r.id) FROM recorded_requests r WHERE r.account_id = i.account), 0) AS newest,
        (SELECT ${dialect.join("'id: ' || x.id || x.line || 'event: request' || x.line || 'data: ' || x.record || x.line || x.line", 'x.id', '')}
          FROM (SELECT r.id, ${RECORD} AS record, '\n' AS line FROM recorded_requests r WHERE ${where} AND r.id <= i.last) AS x) AS text
      FROM i JOIN accounts a ON a.id = i.account AND a.deleted_at IS NULL`
  }
}

/**
 * Returns requests as text/event-stream, in the form that event streams read. A stream never expires: it continues with
 * the next request that the journal still has.
 */
export async function streamRequests (read: Read, account: number, after: number): Promise<EventPage | undefined> {
  const row = await read(streamQuery, { account, after })
  return row && {
    newest: Number(row.newest),
    oldest: 0,
    text: row.text ?? '',
    last: row.last === null ? after : Number(row.last)
  }
}
