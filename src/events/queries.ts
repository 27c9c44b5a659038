import type { Dialect } from '../database/dialect.ts'
import { queryOfShape } from '../database/reads/query-shapes.ts'
import type { Query, Read } from '../database/reads/query.ts'
import { lastWithin, MAX_PAGE_BYTES } from '../database/sql/keyset-pagination.ts'

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
  /** Where streams can have filters: each of them, and what filters look at. */
  messages?: Array<{ text: string, facts: object }>
}

interface PageInput {
  account: number
  after: number
  /** Maximum number of events. */
  limit: number
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
  /** No event begins after this number of bytes of data. */
  dataBytes: number
}

/** Maximum size of an event in bytes. The largest events contain a message. */
const MAX_EVENT_BYTES = 61_000

/** Reads in one statement, and so at one moment: every later read sees the events up to `newest`. */
function eventPageQuery (event: EventText, separator: string, { events, dataBytes }: PageLimits): EventPageQuery {
  const rows = 'FROM events e WHERE e.account_id = i.account AND e.id > i.after'
  const last = (dialect: Dialect): string => lastWithin(dataBytes, false, `
    SELECT e.id AS position, octet_length(e.data) AS bytes ${rows} ORDER BY e.id LIMIT ${dialect.limit('i', events)}`)
  return {
    maxRowBytes: Math.min(events * MAX_EVENT_BYTES, dataBytes + MAX_EVENT_BYTES),
    sql: (dialect) => `
      WITH i AS MATERIALIZED (
        SELECT i.*, ${last(dialect)} AS last
        FROM ${dialect.jsonRows('i', { ord: 'ordinality', account: 'bigint', after: 'bigint', limit: 'bigint' })})
      SELECT i.ord, a.last_event_id AS newest,
        (SELECT e.id FROM events e WHERE e.account_id = i.account ORDER BY e.id LIMIT 1) AS oldest,
        (SELECT string_agg(x.text, '${separator}' ORDER BY x.id)
          FROM (SELECT e.id, ${event(dialect)} AS text ${rows} AND e.id <= i.last) AS x) AS text,
        i.last
      FROM i JOIN accounts a ON a.id = i.account AND a.deleted_at IS NULL`
  }
}

/** @returns up to `limit` events as JSON texts joined by commas; `undefined` when the account was deleted */
export async function listEvents (
  read: Read, account: number, after: number, limit: number
): Promise<EventPage | undefined> {
  const query = queryOfShape(`events ${limit}`, () =>
    eventPageQuery(eventJson, ',', { events: limit, dataBytes: MAX_PAGE_BYTES }))
  return await readPage(read, query, { account, after, limit })
}

/** Limits one chunk of a stream. */
const CHUNK: PageLimits = { events: 200, dataBytes: 65_536 }

const streamQuery = eventPageQuery(eventBlock, '', CHUNK)

/** @returns events as text/event-stream; `undefined` when the account was deleted */
export async function streamEvents (read: Read, account: number, after: number): Promise<EventPage | undefined> {
  return await readPage(read, streamQuery, { account, after, limit: CHUNK.events })
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
