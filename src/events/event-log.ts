import { oncePerDialect, type Dialect } from '../database/dialect.ts'
import type { BeforeCommit, Changes, CompletedCommand, NewEvent } from '../database/group-commit/command.ts'
import type { SqlAfterWrites, Transaction } from '../database/group-commit/transaction.ts'

/** An event with its number in the account's feed. */
export interface NumberedEvent {
  account: number
  id: number
  type: string
  tracks: number | undefined
}

/** The subscribers of events: what they need to know of an event is written in the event's own transaction. */
export interface EventSubscribers {
  /** Returns an SQL condition: whether an account, named by an SQL expression, has any subscriber. */
  exist: (account: string) => string
  /** Enqueues the events for their subscribers. Returns whether any was enqueued. */
  enqueue: (tx: Transaction, events: NumberedEvent[]) => Promise<boolean>
}

/**
 * Returns a commit hook that writes the events of a group, numbered in each account's own gapless sequence. The
 * accounts' counters are locked here, after every other row and in id order, and only the enqueuing of deliveries and
 * COMMIT follow: locks never cross and last little longer than the fsync.
 */
export function eventLog (subscribers: EventSubscribers): BeforeCommit {
  const statementsOf = oncePerDialect((dialect) => eventStatements(dialect, subscribers))
  return async (tx, completed) => {
    const byAccount = eventsByAccount(completed)
    if (byAccount.size === 0) return {}
    const counters = await writeEvents(tx, byAccount, statementsOf(tx.dialect))
    for (const { id, offset } of counters) tx.confirmClock(id, offset * 1000)
    const wanted = counters.filter(({ subscribed }) => subscribed).flatMap(({ id: account, last }) => {
      const events = byAccount.get(account)!
      return events.map(({ type, tracks }, i) => ({ account, id: last - events.length + 1 + i, type, tracks }))
    })
    const enqueued = wanted.length > 0 && await subscribers.enqueue(tx, wanted)
    // What an event tracks is settled by its deliveries, or by a worker when there are none.
    const tracked = [...byAccount.values()].some((events) => events.some(({ tracks }) => tracks !== undefined))
    const changes: Changes = { events: counters.map(({ id }) => id) }
    return enqueued || tracked ? { ...changes, deliveries: [] } : changes
  }
}

function eventsByAccount (completed: CompletedCommand[]): Map<number, NewEvent[]> {
  const byAccount = new Map<number, NewEvent[]>()
  for (const { entry: { context }, success: { events = [] } } of completed) {
    for (const event of events) {
      const account = event.account ?? context.account
      if (account === null) continue
      const list = byAccount.get(account)
      if (list === undefined) byAccount.set(account, [event])
      else list.push(event)
    }
  }
  return byAccount
}

/** An account's counter, once the events of the group are numbered. */
interface Counter {
  /** The account. */
  id: number
  /** Number of its newest event. */
  last: number
  subscribed: boolean | number
  /** How far its clock is ahead, in seconds. */
  offset: number
}

interface EventStatements {
  /** Increments the counters and inserts the events. */
  both: SqlAfterWrites
  /** The same in two statements. */
  increment: string
  insert: string
}

function eventStatements (dialect: Dialect, { exist }: EventSubscribers): EventStatements {
  const countColumns = { account: 'bigint', count: 'bigint' } as const
  const lock = (condition: string, parameter?: number): string => `
    SELECT a.id, i.count FROM ${dialect.jsonRows('i', countColumns, parameter)} JOIN accounts a ON a.id = i.account
    WHERE a.deleted_at IS NULL AND ${condition} ORDER BY a.id ${dialect.hasRowLocks ? 'FOR NO KEY UPDATE OF a' : ''}`
  const increment = `
    UPDATE accounts SET last_event_id = last_event_id + locked.count FROM locked WHERE accounts.id = locked.id
    RETURNING accounts.id, accounts.last_event_id AS last, accounts.clock_offset_seconds AS "offset",
      ${exist('accounts.id')} AS subscribed`
  const eventColumns = { account: 'bigint', later: 'bigint', type: 'text', data: 'text', now: 'text' } as const
  const insert = (counters: string, last: string, parameter?: number): string => `
    INSERT INTO events (account_id, id, type, timestamp, data)
    SELECT i.account, c.${last} - i.later, i.type, ${dialect.toTime('i.now')}, i.data
    FROM ${dialect.jsonRows('i', eventColumns, parameter)} JOIN ${counters} AS c ON c.id = i.account`
  return {
    both: (parameter, written) => ({
      with: [
        `locked AS (${lock(written, parameter)})`,
        `counted AS (${increment})`,
        `inserted AS (${insert('counted', 'last', parameter + 1)})`
      ],
      select: 'SELECT id, last, "offset", subscribed FROM counted'
    }),
    increment: `WITH locked AS (${lock('true')}) ${increment}`,
    insert: insert('accounts', 'last_event_id')
  }
}

/**
 * Increments the counters and inserts the events: in one statement where possible, because it locks the counters. A
 * deleted account has no counter, and its events are dropped: a worker may still update its messages.
 */
async function writeEvents (
  tx: Transaction, byAccount: Map<number, NewEvent[]>, { both, increment, insert }: EventStatements
): Promise<Counter[]> {
  const { dialect, now } = tx
  const counts = [...byAccount].map(([account, { length }]) => ({ account, count: length }))
  const events = [...byAccount].flatMap(([account, list]) =>
    list.map(({ type, data }, i) => ({ account, later: list.length - 1 - i, type, data, now: now(account) })))
  if (dialect.supportsWritableCtes) return await tx.queryWithDeferred<Counter>(both, counts, events)
  const counters = await tx.query<Counter>(increment, counts)
  const live = new Set(counters.map(({ id }) => id))
  await tx.execute(insert, events.filter(({ account }) => live.has(account)))
  return counters
}
