import type { AccountClocks } from '../account-clocks.ts'
import type { Dialect } from '../dialect.ts'
import { classifyError } from '../error-classification.ts'
import type { EventLog, QueuedCommand } from '../group-commit/command.ts'
import type { OwnStatement, Run } from '../statements.ts'
import { claimsOf, replaysOf, type ClaimResult } from './idempotency.ts'
import { once } from './row-statements.ts'

/** Another transaction has locked one of the keys, for longer than a group waits. */
export class IdempotencyKeyLocked extends Error {}

export interface FirstMessage {
  /** The entries whose keys were not used before. */
  fresh: QueuedCommand[]
  /** How far the clocks of the accounts are ahead, in ms; deleted accounts are missing. */
  offsets: Map<number, number>
  /** How many bytes the accounts store. */
  stored: Map<number, number>
  /** The sizes of expired responses that new ones replace. */
  expired: ClaimResult['expired']
  /** Whether an account has a subscriber of the event log. */
  isSubscribed: boolean
  /** The rows of the statements behind. */
  rows: object[][]
}

export interface FirstMessageOptions {
  clocks: AccountClocks
  /** How the accounts are locked: `update` lets no other transaction write rows of theirs. */
  lock: 'key share' | 'update'
  /** Finds out whether the accounts have subscribers of its events. */
  eventLog: EventLog
}

/**
 * Sends what every transaction of a group begins with, and statements behind it, in one round trip: locks the accounts,
 * so that none is deleted and none of their clocks is moved until the end, and claims the Idempotency-Keys.
 *
 * @param answers gets the answers of repeated requests
 * @throws IdempotencyKeyLocked
 */
export async function sendFirstMessage (
  run: Run, dialect: Dialect, group: readonly QueuedCommand[], accounts: readonly number[],
  behind: readonly OwnStatement[],
  { clocks, lock, eventLog }: FirstMessageOptions,
  answers: Array<() => void>
): Promise<FirstMessage> {
  const keyed = group.filter(({ context }) => context.idempotency !== undefined)
  const claims = keyed.length === 0 ? undefined : claimsOf(dialect, keyed)
  const ids = JSON.stringify(accounts.map((id) => ({ id })))
  const locks = accounts.length === 0 ? [] : [{ sql: accountsSql(dialect, lock, eventLog), values: [ids] }]
  const statements = [...locks, ...claims === undefined ? [] : [claims.statement], ...behind]

  const rows = statements.length === 0
    ? []
    : await run(statements).catch((error: unknown) => {
      const isOfClaim = claims !== undefined && (error as { statement?: number }).statement === locks.length
      if (isOfClaim && classifyError(error) === 'conflict') {
        throw new IdempotencyKeyLocked('a key is in use', { cause: error })
      }
      throw error
    })
  const offsets = new Map<number, number>()
  const stored = new Map<number, number>()
  const found = accounts.length === 0 ? [] : rows[0] as AccountRow[]
  for (const { id, ahead, bytes } of found) {
    clocks.advance(id, ahead * 1000)
    offsets.set(id, ahead * 1000)
    stored.set(id, bytes)
  }
  const { unclaimed, expired }: ClaimResult = claims?.resultOf(rows[locks.length]!) ?? { unclaimed: [], expired: [] }
  const replays = await replaysOf(run, dialect, unclaimed)
  for (const [entry, result] of replays) {
    answers.push(() => { 'code' in result ? entry.reject(result) : entry.resolve(result) })
  }
  return {
    fresh: group.filter((entry) => !replays.has(entry)),
    offsets,
    stored,
    expired,
    isSubscribed: found.some(({ subscribed }) => Boolean(subscribed)),
    rows: rows.slice(statements.length - behind.length)
  }
}

/** SQLite's booleans are 0 and 1. */
interface AccountRow { id: number, ahead: number, bytes: number, subscribed: boolean | number }

/** PostgreSQL evaluates the condition again after it waited for a lock: an account that was deleted is not found. */
function accountsSql (
  dialect: Dialect, lock: 'key share' | 'update', { hasSubscriber, subscribers }: EventLog
): string {
  return once(dialect, `accounts ${lock} ${subscribers}`, () => {
    const ids = `SELECT i.id FROM ${dialect.jsonRows('i', { id: 'bigint' })}`
    return `
      SELECT a.id, a.clock_offset_seconds AS ahead, a.stored_bytes AS bytes, ${hasSubscriber('a.id')} AS subscribed
      ${dialect.fromByIds('accounts', 'a', 'id', ids)} AND a.deleted_at IS NULL
      ${dialect.isServer ? `ORDER BY a.id ${lock === 'update' ? dialect.forUpdate : dialect.forKeyShare}` : ''}`
  })
}
