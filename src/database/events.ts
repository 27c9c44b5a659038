import type { Done, Entry, NewEvent } from './command.ts'
import { queueDeliveries } from './deliveries.ts'
import type { Session } from './session.ts'

/**
 * Writes the events of a group, numbered in each account's own gapless sequence. The accounts' counters
 * are locked here, after every other row and in id order, and nothing but COMMIT follows: locks never
 * cross and are held only through the fsync.
 *
 * @returns the accounts that have new events
 * @throws when an account is gone, which undoes the group
 */
export async function appendEvents (session: Session, done: Array<{ entry: Entry, done: Done<unknown> }>): Promise<number[]> {
  const { dialect, query, execute, now } = session
  const byAccount = new Map<number, NewEvent[]>()
  for (const { entry: { writer }, done: { events = [] } } of done) {
    for (const event of events) {
      const account = event.account ?? writer.account
      if (account === null) continue
      const list = byAccount.get(account)
      if (list === undefined) byAccount.set(account, [event])
      else list.push(event)
    }
  }
  if (byAccount.size === 0) return []

  const counts = [...byAccount].map(([account, events]) => ({ account, count: events.length }))
  const counters = await query<{ id: number, last: number, heard: boolean | number }>(`
    WITH counted AS (
      SELECT a.id, i.count FROM accounts a JOIN ${dialect.inputs('i', { account: 'bigint', count: 'bigint' })} ON i.account = a.id
      ORDER BY a.id ${dialect.forUpdate === '' ? '' : 'FOR NO KEY UPDATE OF a'}
    )
    UPDATE accounts SET last_event_id = last_event_id + counted.count FROM counted WHERE accounts.id = counted.id
    RETURNING accounts.id, accounts.last_event_id AS last,
      EXISTS (SELECT 1 FROM webhooks w WHERE w.account_id = accounts.id AND w.enabled) AS heard`, counts)
  if (counters.length !== byAccount.size) throw new Error('an account of this group was deleted')

  const rows: object[] = []
  const queued: Array<{ account: number, id: number, type: string, message: number | undefined }> = []
  for (const { id: account, last, heard } of counters) {
    const events = byAccount.get(account)!
    events.forEach(({ type, data, message }, i) => {
      const id = last - events.length + 1 + i
      rows.push({ account, id, type, data: JSON.stringify(data), now })
      if (heard) queued.push({ account, id, type, message })
    })
  }
  await execute(`
    INSERT INTO events (account_id, id, type, timestamp, data)
    SELECT i.account, i.id, i.type, ${dialect.toTime('i.now')}, i.data
    FROM ${dialect.inputs('i', { account: 'bigint', id: 'bigint', type: 'text', data: 'text', now: 'text' })}`, rows)
  if (queued.length > 0) await queueDeliveries(session, queued)
  return [...byAccount.keys()]
}
