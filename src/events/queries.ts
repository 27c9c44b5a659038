import type { Dialect } from '../database/dialect.ts'
import type { Query, Read } from '../database/read-batching.ts'

/** A page of an account's events, with the range of those that are stored. */
export interface EventPage {
  /** Number of the newest event ever, 0 before the first. */
  newest: number
  /** Number of the oldest stored event; `undefined` when none is stored. */
  oldest: number | undefined
  /** The events after the requested position, oldest first, as text; empty when there are none. */
  text: string
  /** Number of the last of them; the requested position when there are none. */
  last: number
}

interface PageInput {
  account: number
  after: number
}

interface PageRow {
  newest: bigint
  oldest: bigint | null
  text: string | null
  last: bigint | null
}

type EventPageQuery = Query<PageInput, PageRow>

/** Builds the expression for a row of `events e` as text. */
type EventText = (dialect: Dialect) => string

const LINE_END = "'\n'"

/** An event as JSON, as the API shows it. */
export const eventJson: EventText = (dialect) => `
  '{"id":' || e.id || ',"type":"' || e.type || '","timestamp":"' || ${dialect.time('e.timestamp')}
  || '","data":' || e.data || '}'`

/** An event as text/event-stream; its JSON contains no line break, so its data is one line. */
const eventBlock: EventText = (dialect) => `
  'id: ' || e.id || ${LINE_END} || 'event: ' || e.type || ${LINE_END}
  || 'data: ' || ${eventJson(dialect)} || ${LINE_END} || ${LINE_END}`

interface PageLimits {
  events: number
  /** No event begins after this number of characters of data. */
  dataLength?: number
}

/** Reads in one statement, and so at one moment: every later read sees the events up to `newest`. */
function eventPageQuery (event: EventText, separator: string, { events, dataLength }: PageLimits): EventPageQuery {
  const page = (columns: string): string => `
    SELECT ${columns} FROM events e WHERE e.account_id = i.account AND e.id > i.after ORDER BY e.id LIMIT ${events}`
  const rows = (columns: string): string => dataLength === undefined
    ? page(columns)
    : `SELECT * FROM (
        SELECT z.*, sum(z.size) OVER (ORDER BY z.id) - z.size AS before
        FROM (${page(`${columns}, length(e.data) AS size`)}) AS z) AS y
      WHERE y.before < ${dataLength}`
  return {
    sql: (dialect) => `
      SELECT i.ord, a.last_event_id AS newest,
        (SELECT e.id FROM events e WHERE e.account_id = i.account ORDER BY e.id LIMIT 1) AS oldest,
        (SELECT ${dialect.join('x.text', 'x.id', separator)}
          FROM (${rows(`e.id, ${event(dialect)} AS text`)}) AS x) AS text,
        (SELECT max(x.id) FROM (${rows('e.id')}) AS x) AS last
      FROM ${dialect.jsonRows('i', { ord: 'ordinality', account: 'bigint', after: 'bigint' })}
      JOIN accounts a ON a.id = i.account`
  }
}

/** By limit. */
const listQueries = new Map<number, EventPageQuery>()

/** @returns up to `limit` events as JSON texts joined by commas; `undefined` when the account was deleted */
export async function listEvents (
  read: Read, account: number, after: number, limit: number
): Promise<EventPage | undefined> {
  let query = listQueries.get(limit)
  if (query === undefined) {
    query = eventPageQuery(eventJson, ',', { events: limit })
    listQueries.set(limit, query)
  }
  return await readPage(read, query, { account, after })
}

/** Limit one chunk of a stream: the number of its events, and the characters after which no event begins. */
const CHUNK_EVENTS = 200
const CHUNK_DATA_LENGTH = 65_536

const streamQuery = eventPageQuery(eventBlock, '', { events: CHUNK_EVENTS, dataLength: CHUNK_DATA_LENGTH })

/** @returns events as text/event-stream; `undefined` when the account was deleted */
export async function streamEvents (read: Read, account: number, after: number): Promise<EventPage | undefined> {
  return await readPage(read, streamQuery, { account, after })
}

async function readPage (read: Read, query: EventPageQuery, input: PageInput): Promise<EventPage | undefined> {
  const row = await read(query, input)
  return row && {
    newest: Number(row.newest),
    oldest: row.oldest === null ? undefined : Number(row.oldest),
    text: row.text ?? '',
    last: row.last === null ? input.after : Number(row.last)
  }
}
