import { oncePerDialect, type Dialect } from '../database/dialect.ts'
import type {
  BeforeCommit, Changes, CompletedCommand, FastPathEvents, NewEvent
} from '../database/group-commit/command.ts'
import { Outdated, type Transaction } from '../database/group-commit/transaction.ts'
import type { SqlAfterWrites } from '../database/group-commit/transaction-statements.ts'
import { textWithReferences } from '../database/steps.ts'

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
  const withoutSubscribers = new AccountSet()
  return Object.assign(writeAll, { inFastPath: fastPathEvents(subscribers, withoutSubscribers) })

  async function writeAll (tx: Transaction, completed: CompletedCommand[]): Promise<Changes> {
    const byAccount = eventsByAccount(completed)
    if (byAccount.size === 0) return {}
    const accounts = [...byAccount.keys()]
    const statements = statementsOf(tx.dialect)
    // What an event tracks is settled by its deliveries, or by a worker when there are none.
    const tracked = [...byAccount.values()].some((events) => events.some(({ tracks }) => tracks !== undefined))
    const announced: Changes = tracked ? { deliveries: [] } : {}
    const nothingFollows = accounts.every((id) => tx.lockedAccounts.has(id) && withoutSubscribers.has(id))
    if (nothingFollows && tx.dialect.supportsWritableCtes) {
      await commitEvents(tx, byAccount, statements, withoutSubscribers)
      return { events: accounts, ...announced }
    }
    const counters = await writeEvents(tx, byAccount, statements)
    for (const { id, offset, subscribed } of counters) {
      tx.confirmClock(id, offset * 1000)
      if (!subscribed) withoutSubscribers.add(id)
    }
    const wanted = counters.filter(({ subscribed }) => subscribed).flatMap(({ id: account, last }) => {
      const events = byAccount.get(account)!
      return events.map(({ type, tracks }, i) => ({ account, id: last - events.length + 1 + i, type, tracks }))
    })
    const enqueued = wanted.length > 0 && await subscribers.enqueue(tx, wanted)
    return { events: counters.map(({ id }) => id), ...enqueued ? { deliveries: [] } : announced }
  }
}

/** Returns the part of fast paths that writes their events, for accounts without subscribers. */
function fastPathEvents ({ exist }: EventSubscribers, withoutSubscribers: AccountSet): FastPathEvents {
  return {
    isPossible: (account) => withoutSubscribers.has(account),
    condition: `NOT ${exist('accounts.id')}`,
    steps: (dialect, { type, data }) => [
      {
        name: 'counted',
        add: 'accounts',
        id: ['id', '@account'],
        amount: '1',
        columns: { last_event_id: 'bigint' }
      },
      {
        name: 'logged',
        insert: 'events',
        values: {
          account_id: '@account',
          id: '@counted.last_event_id',
          type: `'${type}'`,
          timestamp: dialect.toTime('@now'),
          data: textWithReferences(data)
        },
        columns: { id: 'bigint' }
      }
    ],
    changesOf: (accounts, tracked) => ({ events: accounts, ...tracked ? { deliveries: [] } : {} })
  }
}

/** Maximum number of accounts that are remembered: about 3 MB. */
const MAX_REMEMBERED = 100_000

/** Accounts that had no subscriber when their last event was written. That can have changed since. */
class AccountSet {
  readonly #accounts = new Set<number>()

  has (account: number): boolean {
    return this.#accounts.has(account)
  }

  add (account: number): void {
    if (this.#accounts.size >= MAX_REMEMBERED) this.#accounts.clear()
    this.#accounts.add(account)
  }

  delete (account: number): void {
    this.#accounts.delete(account)
  }
}

type EventsByAccount = Map<number, NewEvent[]>

function eventsByAccount (completed: CompletedCommand[]): EventsByAccount {
  const byAccount: EventsByAccount = new Map()
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
  /** The same, and fails with `SUBSCRIBED` if an account has a subscriber. */
  bothWithoutSubscribers: SqlAfterWrites
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
  const both = (select: string): SqlAfterWrites => (parameter, written) => ({
    with: [
      `locked AS (${lock(written, parameter)})`,
      `counted AS (${increment})`,
      `inserted AS (${insert('counted', 'last', parameter + 1)})`
    ],
    select
  })
  return {
    both: both('SELECT id, last, "offset", subscribed FROM counted'),
    // SQL has no other way to fail under a condition.
    bothWithoutSubscribers: both(
      `SELECT CASE WHEN subscribed THEN CAST('${SUBSCRIBED}' || id AS integer) END FROM counted`),
    increment: `WITH locked AS (${lock('true')}) ${increment}`,
    insert: insert('accounts', 'last_event_id')
  }
}

/** Part of the message of the error. */
const SUBSCRIBED = 'subscribers of account '

/**
 * Writes the events and commits in the same round trip. That is possible if no deliveries are to be enqueued. Only the
 * database knows, so the statement fails if an account has a subscriber.
 *
 * @throws Outdated when an account has a subscriber
 */
async function commitEvents (
  tx: Transaction, byAccount: EventsByAccount, statements: EventStatements, withoutSubscribers: AccountSet
): Promise<void> {
  try {
    await tx.queryAndCommit(statements.bothWithoutSubscribers, ...inputsOf(tx, byAccount))
  } catch (error) {
    if (!(error as Error).message.includes(SUBSCRIBED)) throw error
    for (const account of byAccount.keys()) withoutSubscribers.delete(account)
    throw new Outdated('an account has a subscriber since its last event', { cause: error })
  }
}

/**
 * Increments the counters and inserts the events: in one statement where possible, because it locks the counters. A
 * deleted account has no counter, and its events are dropped: a worker may still update its messages.
 */
async function writeEvents (
  tx: Transaction, byAccount: EventsByAccount, { both, increment, insert }: EventStatements
): Promise<Counter[]> {
  const [counts, events] = inputsOf(tx, byAccount)
  if (tx.dialect.supportsWritableCtes) return await tx.queryWithDeferred<Counter>(both, counts, events)
  const counters = await tx.query<Counter>(increment, counts)
  const live = new Set(counters.map(({ id }) => id))
  // The parameter needs no number: PostgreSQL has returned.
  tx.defer(() => insert, events.filter(({ account }) => live.has(account)))
  return counters
}

/** Returns the parameters of the statements: the number of events of each account, and the events. */
function inputsOf ({ now }: Transaction, byAccount: EventsByAccount): [object[], Array<{ account: number }>] {
  const counts = [...byAccount].map(([account, { length }]) => ({ account, count: length }))
  const events = [...byAccount].flatMap(([account, list]) =>
    list.map(({ type, data }, i) => ({ account, later: list.length - 1 - i, type, data, now: now(account) })))
  return [counts, events]
}
