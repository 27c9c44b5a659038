import { oncePerDialect, type Dialect } from '../database/dialect.ts'
import { getOrAdd } from '../database/get-or-add.ts'
import type { CompletedCommand, EventLog, EventWrites } from '../database/group-commit/command.ts'
import type { Changes, NewEvent } from '../database/unit-of-work/success.ts'
import type { OwnStatement } from '../database/statements.ts'
import { bytesOfTexts } from '../database/unit-of-work/stored-bytes.ts'

/** The subscribers of events: what they need to know of an event is written in the event's own transaction. */
export interface EventSubscribers {
  /**
   * Returns statements that enqueue events for their subscribers, as parts of one statement if the database allows
   * that. The first returns a row for each that it enqueues.
   *
   * @param events a FROM item with the events, as `i`: account, later, type and tracks
   * @param counters a FROM item with the accounts, as `c`: id, last, now and giveUp. The id of an event is
   *   `c.last - i.later`.
   */
  enqueue: (dialect: Dialect, events: string, counters: string) => { insert: string, track: string }
  /** Returns an SQL condition: whether an account, named by an SQL expression, has any subscriber. */
  exist: (account: string) => string
  /** Their table. */
  table: string
  /** How long an event is tried to be delivered, in ms. */
  lifetimeMs: number
}

/**
 * Returns the event log, which writes the events of a group, numbered in each account's own gapless sequence. The
 * accounts' counters are locked here, after every other row and in id order, and only the responses of idempotency keys
 * and COMMIT follow: locks never cross and last little longer than the fsync.
 */
export function eventLog (subscribers: EventSubscribers): EventLog {
  const textsOf = oncePerDialect((dialect) => eventStatements(dialect, subscribers))
  return { hasSubscriber: subscribers.exist, subscribers: subscribers.table, write }

  function write (...[dialect, completed, timeOf, mayBeSubscribed, bytes]: Parameters<EventLog['write']>): EventWrites {
    const byAccount = eventsByAccount(completed)
    const events: EventText[] = []
    for (const [account, list] of byAccount) {
      for (const [i, { type, data, tracks }] of list.entries()) {
        const text = JSON.stringify(data)
        bytes.add(account, bytesOfTexts(type, text))
        const later = list.length - 1 - i
        const head = `{"account":${account},"later":${later},"type":"${type}","tracks":${tracks ?? null}`
        events.push({ head, data: text, isTracked: tracks !== undefined })
      }
    }
    // What an event tracks is settled by its deliveries, or by a worker when there are none.
    const tracked = events.filter(({ isTracked }) => isTracked)
    const accounts = new Set([...byAccount.keys(), ...bytes.added.keys()])
    if (accounts.size === 0) return { statements: [], changesOf: () => ({}) }
    const counts = JSON.stringify(Array.from(accounts, (account) => ({
      account,
      count: byAccount.get(account)?.length ?? 0,
      bytes: bytes.of(account),
      now: timeOf(account),
      giveUp: timeOf(account, subscribers.lifetimeMs)
    })))
    const rows = `[${events.map(({ head, data }) => `${head},"data":${data}}`).join()}]`
    const { all, logged, count, insert, enqueue, track } = textsOf(dialect)
    const following = dialect.isServer || !mayBeSubscribed
      ? []
      : [
          { sql: enqueue, values: [withoutData(events), counts] },
          ...tracked.length === 0 ? [] : [{ sql: track, values: [withoutData(tracked)] }]
        ]
    const statements: OwnStatement[] = dialect.isServer
      ? [{ sql: mayBeSubscribed ? all : logged, values: [counts, rows] }]
      : [{ sql: count, values: [counts] }, { sql: insert, values: [rows, counts] }, ...following]
    return {
      statements,
      changesOf ([counters, , enqueued = []]): Changes {
        const accounts = (counters as Counter[]).map(({ id }) => id).filter((id) => byAccount.has(id))
        const isEnqueued = enqueued.length > 0 || (counters as Counter[]).some(({ enqueued = 0 }) => enqueued > 0)
        return {
          ...accounts.length > 0 && { events: accounts },
          ...isEnqueued || tracked.length > 0 ? { deliveries: [] } : {}
        }
      }
    }
  }
}

/** An event as JSON: the start of its object, and its data. */
interface EventText { head: string, data: string, isTracked: boolean }

/** Returns the events as JSON for statements that only enqueue them. */
function withoutData (events: readonly EventText[]): string {
  return `[${events.map(({ head }) => `${head}}`).join()}]`
}

function eventsByAccount (completed: readonly CompletedCommand[]): Map<number, NewEvent[]> {
  const byAccount = new Map<number, NewEvent[]>()
  for (const { entry: { context }, success: { events = [] } } of completed) {
    for (const event of events) {
      const account = event.account ?? context.account
      if (account === null) continue
      getOrAdd(byAccount, account, (): NewEvent[] => []).push(event)
    }
  }
  return byAccount
}

/** An account's counter, once the events of the group are numbered. A deleted account has none. */
interface Counter {
  /** The account. */
  id: number
  /** How many deliveries were enqueued, for all accounts, where the same statement does it. */
  enqueued?: number
}

interface EventTexts {
  /** Everything in one statement, where the database allows several that write. */
  all: string
  /** The same without subscribers. */
  logged: string
  /** The same in a statement each. */
  count: string
  insert: string
  enqueue: string
  track: string
}

const EVENT_COLUMNS = {
  account: 'bigint', later: 'bigint', type: 'text', data: 'text', tracks: 'bigint'
} as const

const COUNT_COLUMNS = {
  account: 'bigint', count: 'bigint', bytes: 'bigint', now: 'text', giveUp: 'text'
} as const

function eventStatements (dialect: Dialect, subscribers: EventSubscribers): EventTexts {
  const counts = dialect.jsonRows('i', COUNT_COLUMNS)
  const insert = (events: string, counters: string): string => `
    INSERT INTO events (account_id, id, type, timestamp, data)
    SELECT i.account, c.last - i.later, i.type, ${dialect.toTime('c.now')}, i.data
    FROM ${events} JOIN ${counters} ON c.id = i.account`
  const events = dialect.jsonRows('i', EVENT_COLUMNS, dialect.isServer ? 2 : 1)
  if (!dialect.isServer) {
    const counters = `(
      SELECT a.id, a.last_event_id AS last, k.now, k."giveUp" FROM ${dialect.jsonRows('k', COUNT_COLUMNS)}
      JOIN accounts a ON a.id = k.account AND a.deleted_at IS NULL) AS c`
    const { insert: enqueue, track } = subscribers.enqueue(dialect, events, counters)
    return {
      all: '',
      logged: '',
      count: `
        UPDATE accounts SET last_event_id = last_event_id + i.count, stored_bytes = stored_bytes + i.bytes FROM ${counts}
        WHERE accounts.id = i.account AND deleted_at IS NULL
        RETURNING accounts.id`,
      insert: insert(events, counters),
      enqueue,
      track
    }
  }
  const { insert: enqueue, track } = subscribers.enqueue(dialect, events, 'counted AS c')
  const log = `
    WITH locked AS (
      SELECT a.id, i.count, i.bytes, i.now, i."giveUp" FROM ${counts}
      JOIN accounts a ON a.id = i.account AND a.deleted_at IS NULL ORDER BY a.id FOR NO KEY UPDATE OF a),
    counted AS (
      UPDATE accounts SET last_event_id = last_event_id + locked.count, stored_bytes = stored_bytes + locked.bytes
      FROM locked WHERE accounts.id = locked.id
      RETURNING accounts.id, accounts.last_event_id AS last, locked.now, locked."giveUp"),
    inserted AS (${insert(events, 'counted AS c')})`
  const all = `${log},
    enqueued AS (${enqueue}),
    tracked AS (${track})
    SELECT id, (SELECT count(*) FROM enqueued) AS enqueued FROM counted`
  return { all, logged: `${log} SELECT id FROM counted`, count: '', insert: '', enqueue: '', track: '' }
}
