import type { Done, Entry } from './commit.ts'
import type { Session } from './session.ts'

/** An event before the committer gives it its number and its time. */
export interface NewEvent {
  type: string
  /** Whole records as they are after the change. */
  data: object
}

/**
 * Writes the events of a group, numbered in each account's own gapless sequence. The accounts' counters
 * are locked here, after every other row and in id order, and nothing but COMMIT follows: locks never
 * cross and are held only through the fsync.
 *
 * @returns the accounts that have new events
 * @throws when an account is gone, which undoes the group
 */
export async function appendEvents ({ dialect, query, execute, now }: Session, done: Array<{ entry: Entry, done: Done<unknown> }>): Promise<number[]> {
  const byAccount = new Map<number, NewEvent[]>()
  for (const { entry: { writer: { account } }, done: { events = [] } } of done) {
    if (account === null || events.length === 0) continue
    const list = byAccount.get(account)
    if (list === undefined) byAccount.set(account, [...events])
    else list.push(...events)
  }
  if (byAccount.size === 0) return []

  const counts = [...byAccount].map(([account, events]) => ({ account, count: events.length }))
  const counters = await query<{ id: number, last: number }>(`
    WITH counted AS (
      SELECT a.id, i.count FROM accounts a JOIN ${dialect.inputs('i', { account: 'bigint', count: 'bigint' })} ON i.account = a.id
      ORDER BY a.id ${dialect.forUpdate === '' ? '' : 'FOR NO KEY UPDATE OF a'}
    )
    UPDATE accounts SET last_event_id = last_event_id + counted.count FROM counted WHERE accounts.id = counted.id
    RETURNING accounts.id, accounts.last_event_id AS last`, counts)
  if (counters.length !== byAccount.size) throw new Error('an account of this group was deleted')

  const rows: object[] = []
  for (const { id: account, last } of counters) {
    const events = byAccount.get(account)!
    events.forEach(({ type, data }, i) => {
      rows.push({ account, id: last - events.length + 1 + i, type, data: JSON.stringify(data), now })
    })
  }
  await execute(`
    INSERT INTO events (account_id, id, type, timestamp, data)
    SELECT i.account, i.id, i.type, ${dialect.toTime('i.now')}, i.data
    FROM ${dialect.inputs('i', { account: 'bigint', id: 'bigint', type: 'text', data: 'text', now: 'text' })}`, rows)
  return [...byAccount.keys()]
}
