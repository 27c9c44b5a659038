import { IdempotencyKeyInUse } from '../../errors.ts'
import type { AccountClocks } from '../account-clocks.ts'
import type { Dialect } from '../dialect.ts'
import { classifyError } from '../error-classification.ts'
import type { EventLog, QueuedCommand } from '../group-commit/command.ts'
import type { OwnStatement, Run } from '../statements.ts'
import { claimOf, replaysOf } from './idempotency.ts'
import { once } from './row-statements.ts'
import { StoredBytes } from './stored-bytes.ts'
import type { RowLock } from './write.ts'

/**
 * Sends what every transaction of a group begins with, and statements behind it, in one round trip: locks the accounts,
 * so that none is deleted and none of their clocks is moved until the end, and claims the Idempotency-Keys. If a key
 * was used before, its response is loaded in another round trip.
 *
 * @param lock how the accounts are locked: `UPDATE` lets no other transaction write rows of theirs
 * @throws IdempotencyKeyInUse if another transaction has locked one of the keys, for longer than a group waits
 */
export async function sendFirstMessage (
  run: Run, dialect: Dialect, group: readonly QueuedCommand[], accounts: readonly number[],
  behind: readonly OwnStatement[], lock: RowLock,
  { clocks, eventLog, storedBytesLimit }: { clocks: AccountClocks, eventLog: EventLog, storedBytesLimit: number }
) {
  const keyed = group.filter(({ context }) => context.idempotency !== undefined)
  const claims = keyed.length === 0 ? [] : [claimOf(dialect, keyed)]
  const ids = JSON.stringify(accounts.map((id) => ({ id })))
  const locks = accounts.length === 0 ? [] : [{ sql: accountsSql(dialect, lock, eventLog), values: [ids] }]
  const statements = [...locks, ...claims, ...behind]

  const rows = await run(statements).catch((error: unknown) => {
    const isOfClaim = claims.length > 0 && (error as { statement?: number }).statement === locks.length
    throw isOfClaim && classifyError(error) === 'conflict' ? new IdempotencyKeyInUse({ cause: error }) : error
  })
  const offsets = new Map<number, number>()
  const stored = new Map<number, number>()
  const found = accounts.length === 0 ? [] : rows[0] as AccountRow[]
  for (const { id, ahead, bytes } of found) {
    clocks.advance(id, ahead * 1000)
    offsets.set(id, ahead * 1000)
    stored.set(id, bytes)
  }
  const bytes = new StoredBytes(storedBytesLimit, stored)
  const claimed = claims.length === 0 ? [] : rows[locks.length]!
  return {
    /** The answers of the entries whose keys were used before. */
    replays: await replaysOf(run, dialect, keyed, claimed, bytes),
    /** How far the clocks of the accounts are ahead, in ms; deleted accounts are missing. */
    offsets,
    /** What the accounts store, less the expired responses that new ones replace. */
    bytes,
    /** Whether an account has a subscriber of the event log. */
    isSubscribed: found.some(({ subscribed }) => Boolean(subscribed)),
    /** The rows of the statements behind. */
    rows: rows.slice(statements.length - behind.length)
  }
}

/** SQLite's booleans are 0 and 1. */
interface AccountRow { id: number, ahead: number, bytes: number, subscribed: boolean | number }

/** PostgreSQL evaluates the condition again after it waited for a lock: an account that was deleted is not found. */
function accountsSql (dialect: Dialect, lock: RowLock, { hasSubscriber, subscribers }: EventLog): string {
  return once(dialect, `accounts ${lock} ${subscribers}`, () => {
    const ids = `SELECT i.id FROM ${dialect.jsonRows('i', { id: 'bigint' })}`
    return `
      SELECT a.id, a.clock_offset_seconds AS ahead, a.stored_bytes AS bytes, ${hasSubscriber('a.id')} AS subscribed
      ${dialect.fromByIds('accounts', 'a', 'id', ids)} AND a.deleted_at IS NULL
      ${dialect.locking(`ORDER BY a.id FOR ${lock}`)}`
  })
}
