import type { CommandSuccess, QueuedCommand, NewEvent, News } from '../database/group-commit/command.ts'
import { enqueueDeliveries } from '../deliveries/enqueue.ts'
import type { Transaction } from '../database/group-commit/transaction.ts'

/**
 * Writes the events of a group, numbered in each account's own gapless sequence. The accounts' counters
 * are locked here, after every other row and in id order, and nothing but the deliveries to webhooks and
 * COMMIT follows: locks never cross and are held little longer than the fsync takes.
 *
 * @throws when an account is gone, which undoes the group
 */
export async function appendEvents (tx: Transaction, done: Array<{ entry: QueuedCommand, done: CommandSuccess<unknown> }>): Promise<News> {
  const { now } = tx
  const byAccount = new Map<number, NewEvent[]>()
  for (const { entry: { context }, done: { events = [] } } of done) {
    for (const event of events) {
      const account = event.account ?? context.account
      if (account === null) continue
      const list = byAccount.get(account)
      if (list === undefined) byAccount.set(account, [event])
      else list.push(event)
    }
  }
  // A new message is delivered or, when no webhook is asked, settled.
  const webhooks = done.flatMap(({ done: { changedWebhooks = [] } }) => changedWebhooks)
  const due = webhooks.length > 0 || done.some(({ done: { wakes, events = [] } }) => wakes === true || events.some(({ message }) => message !== undefined))
  if (byAccount.size === 0) {
    await tx.flush()
    return { accounts: [], due, webhooks }
  }

  const counts = [...byAccount].map(([account, { length }]) => ({ account, count: length }))
  const listed = [...byAccount].flatMap(([account, events]) => events.map(({ type, data }, i) =>
    ({ account, later: events.length - 1 - i, type, data, now })))
  const counters = await write(tx, counts, listed)
  if (counters.length !== byAccount.size) throw new Error('an account of this group was deleted')

  const queued = counters.flatMap(({ id: account, last, heard }) => {
    if (!heard) return []
    const events = byAccount.get(account)!
    return events.map(({ type, message }, i) => ({ account, id: last - events.length + 1 + i, type, message }))
  })
  const delivers = queued.length > 0 && await enqueueDeliveries(tx, queued)
  return { accounts: [...byAccount.keys()], due: due || delivers, webhooks }
}

interface Counter {
  /** The account's. */
  id: number
  /** The number of its newest event. */
  last: number
  /** Whether a webhook may want to hear of it. */
  heard: boolean | number
}

/** Counts on and inserts: in one statement where it can be, because the counters are locked meanwhile. */
async function write ({ dialect, queryWithDeferred, query, execute }: Transaction, counts: object[], listed: object[]): Promise<Counter[]> {
  const lock = (written: string, parameter?: number): string => `
    SELECT a.id, i.count FROM ${dialect.jsonRows('i', { account: 'bigint', count: 'bigint' }, parameter)} JOIN accounts a ON a.id = i.account
    WHERE ${written} ORDER BY a.id ${dialect.forUpdate === '' ? '' : 'FOR NO KEY UPDATE OF a'}`
  const count = `
    UPDATE accounts SET last_event_id = last_event_id + locked.count FROM locked WHERE accounts.id = locked.id
    RETURNING accounts.id, accounts.last_event_id AS last,
      EXISTS (SELECT 1 FROM webhooks w WHERE w.account_id = accounts.id AND w.enabled) AS heard`
  const insert = (counted: string, last: string, parameter?: number): string => `
    INSERT INTO events (account_id, id, type, timestamp, data)
    SELECT i.account, c.${last} - i.later, i.type, ${dialect.toTime('i.now')}, i.data
    FROM ${dialect.jsonRows('i', { account: 'bigint', later: 'bigint', type: 'text', data: 'text', now: 'text' }, parameter)} JOIN ${counted} AS c ON c.id = i.account`

  if (dialect.supportsWritableCtes) {
    return await queryWithDeferred<Counter>((parameter, written) => ({
      with: [`locked AS (${lock(written, parameter)})`, `counted AS (${count})`, `inserted AS (${insert('counted', 'last', parameter + 1)})`],
      select: 'SELECT id, last, heard FROM counted'
    }), counts, listed)
  }
  const counters = await query<Counter>(`WITH locked AS (${lock('true')}) ${count}`, counts)
  await execute(insert('accounts', 'last_event_id'), listed)
  return counters
}
