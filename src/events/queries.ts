import type { Dialect } from '../database/dialect.ts'
import type { Query, Read } from '../database/read-batching.ts'

/** Where an account's feed stands, and a stretch of it. */
export interface EventPage {
  /** Number of the newest event ever, 0 before the first. */
  newest: number
  /** Number of the oldest event still held; `undefined` when none is. */
  oldest: number | undefined
  /** The events after the position asked for, oldest first, as text; empty when there are none. */
  text: string
  /** Number of the last of them; the position asked for when there are none. */
  last: number
}

interface Row { newest: bigint, oldest: bigint | null, text: string | null, last: bigint | null }

/** An event of `events e` as everybody sees it. */
export const eventJson = (dialect: Dialect): string =>
  `'{"id":' || e.id || ',"type":"' || e.type || '","timestamp":"' || ${dialect.time('e.timestamp')} || '","data":' || e.data || '}'`

/** As text/event-stream has it; JSON holds no line break, so an event's data is one line. */
const streamed = (dialect: Dialect): string =>
  `'id: ' || e.id || ${LINE} || 'event: ' || e.type || ${LINE} || 'data: ' || ${eventJson(dialect)} || ${LINE} || ${LINE}`

const LINE = "'\n'"

/**
 * One statement, and so one moment: what `newest` says was committed is in every later read.
 *
 * @param size no event is begun after so many characters of data
 */
function eventPageQuery (event: (dialect: Dialect) => string, separator: string, limit: number, size?: number): Query<{ account: number, after: number }, Row> {
  const rows = (columns: string): string => {
    const all = (columns: string): string => `SELECT ${columns} FROM events e WHERE e.account_id = i.account AND e.id > i.after ORDER BY e.id LIMIT ${limit}`
    return size === undefined
      ? all(columns)
      : `SELECT * FROM (SELECT z.*, sum(z.size) OVER (ORDER BY z.id) - z.size AS before FROM (${all(`${columns}, length(e.data) AS size`)}) AS z) AS y WHERE y.before < ${size}`
  }
  return {
    sql: (dialect) => `
      SELECT i.ord, a.last_event_id AS newest,
        (SELECT e.id FROM events e WHERE e.account_id = i.account ORDER BY e.id LIMIT 1) AS oldest,
        (SELECT ${dialect.join('x.text', 'x.id', separator)} FROM (${rows(`e.id, ${event(dialect)} AS text`)}) AS x) AS text,
        (SELECT max(x.id) FROM (${rows('e.id')}) AS x) AS last
      FROM ${dialect.jsonRows('i', { ord: 'ordinality', account: 'bigint', after: 'bigint' })}
      JOIN accounts a ON a.id = i.account`
  }
}

const listQueries = new Map<number, Query<{ account: number, after: number }, Row>>()

/** @returns up to `limit` events as JSON texts joined by commas; `undefined` when the account is gone */
export async function listEvents (read: Read, account: number, after: number, limit: number): Promise<EventPage | undefined> {
  let query = listQueries.get(limit)
  if (query === undefined) {
    query = eventPageQuery(eventJson, ',', limit)
    listQueries.set(limit, query)
  }
  return await stretch(read, query, account, after)
}

/** What a stream is sent in one go at most: so many events, and none begun after so many characters. */
const STREAM_EVENTS = 200
const STREAM_SIZE = 65_536

const streamQuery = eventPageQuery(streamed, '', STREAM_EVENTS, STREAM_SIZE)

/** @returns events as text/event-stream; `undefined` when the account is gone */
export async function streamEvents (read: Read, account: number, after: number): Promise<EventPage | undefined> {
  return await stretch(read, streamQuery, account, after)
}

async function stretch (read: Read, query: Query<{ account: number, after: number }, Row>, account: number, after: number): Promise<EventPage | undefined> {
  const row = await read(query, { account, after })
  return row && {
    newest: Number(row.newest),
    oldest: row.oldest === null ? undefined : Number(row.oldest),
    text: row.text ?? '',
    last: row.last === null ? after : Number(row.last)
  }
}
