import type { FastifyError } from '@fastify/error'
import { IdempotencyKeyReused } from '../../errors.ts'
import { timeText } from '../account-clocks.ts'
import { classifyError } from '../error-classification.ts'
import type { Table } from '../table.ts'
import type { Command, CompletedCommand, QueuedCommand, WriteResult } from './command.ts'
import type { QueuedPerform } from './group-transaction.ts'
import { inSequence, type Transaction } from './transaction.ts'

/** The one table that group commits write by themselves; the records of a deleted account are erased as well. */
export const idempotencyTable: Table = { name: 'idempotency_records', id: 'key', idType: 'text', columns: {} }

/**
 * How long a response is stored: 24 hours, as the contract says. A record expires after its `expires_at`, and not at
 * it: at the last instant, where clocks stop, none does.
 */
export const LIFETIME_MS = 24 * 60 * 60 * 1000

/**
 * Maximum time to wait for a key of another process. The other writes of the group wait as well, so it is just long
 * enough for a transaction that commits; a write that waits longer does so outside the group.
 */
const CLAIM_TIMEOUT = '100ms'

/** PostgreSQL does not run the part of a claim that shortens the limit if the accounts of all claims were deleted. */
const RESTORE_LOCK_TIMEOUT = `
  SELECT set_config('lock_timeout', current_setting('petstore.lock_timeout', true), true)
  WHERE current_setting('petstore.lock_timeout', true) <> ''`

interface Claims {
  /** Entries to run. */
  fresh: QueuedPerform[]
  /** Entries whose key was used before, with their results. */
  replays: Array<{ entry: QueuedPerform, result: WriteResult<unknown> | FastifyError }>
}

/** Another transaction has locked one of the keys, for longer than `CLAIM_TIMEOUT`. */
export class IdempotencyKeyLocked extends Error {}

/** A record, or only the account and the key if there is none. */
interface StoredResponse {
  account: number
  key: string
  fingerprint: string | null
  record: string | null
  etag: string | null
}

type Responses = Map<string, StoredResponse>

/**
 * Claims the Idempotency-Keys of a group, first in the transaction: a transaction that loses the race for a key waits
 * on the unique index until the winner has committed, and then finds its response. Keys are claimed in order, so that
 * two groups never wait for each other.
 *
 * @throws IdempotencyKeyLocked
 */
export async function claimIdempotencyKeys (tx: Transaction, group: QueuedPerform[]): Promise<Claims> {
  const keyed = group.filter(({ context }) => context.idempotency !== undefined)
  if (keyed.length === 0) return { fresh: group, replays: [] }
  const claimed = await insertClaims(tx, keyed)
  if (claimed.size === keyed.length) return { fresh: group, replays: [] }

  const lost = keyed.filter((entry) => !claimed.has(recordKey(entry)))
  const responses = await loadResponses(tx, lost)
  const replays = lost.flatMap((entry) => {
    const stored = responses.get(recordKey(entry))
    // The account was deleted: the entry runs, and is refused like all writes of the account.
    return stored === undefined ? [] : [{ entry, result: replayOf(entry, stored) }]
  })
  const replayed = new Set(replays.map(({ entry }) => entry))
  return { fresh: group.filter((entry) => !replayed.has(entry)), replays }
}

/** Returns the keys whose claims succeeded. An expired record is taken over, as if there were none. */
async function insertClaims (
  { dialect, query, now }: Transaction, keyed: QueuedCommand[]
): Promise<Set<string>> {
  const claims = keyed.map(({ context: { account, idempotency } }) =>
    ({ account, ...idempotency, now: now(account), expires: expiryOf(now(account)) }))
  const columns = { account: 'bigint', key: 'text', fingerprint: 'text', now: 'text', expires: 'text' } as const
  // In the statement itself, because a statement of its own would cost each group a round trip.
  const shorten = dialect.hasRowLocks
    ? `WITH shortened AS MATERIALIZED (
        SELECT set_config('petstore.lock_timeout', current_setting('lock_timeout'), true) AS before,
          set_config('lock_timeout', '${CLAIM_TIMEOUT}', true))`
    : ''
  const rows = await query<{ account: number, key: string }>(`
    ${shorten} INSERT INTO idempotency_records (account_id, key, fingerprint, created_at, expires_at)
    SELECT i.account, i.key, i.fingerprint, ${dialect.toTime('i.now')}, ${dialect.toTime('i.expires')}
    FROM ${dialect.jsonRows('i', columns)} JOIN accounts a ON a.id = i.account AND a.deleted_at IS NULL
    ${dialect.hasRowLocks ? 'CROSS JOIN shortened WHERE shortened.before IS NOT NULL' : 'WHERE true'}
    ORDER BY i.account, i.key
    ON CONFLICT (account_id, key) DO UPDATE
      SET fingerprint = excluded.fingerprint, record = NULL, etag = NULL,
        created_at = excluded.created_at, expires_at = excluded.expires_at
      WHERE idempotency_records.expires_at < excluded.created_at
    RETURNING account_id AS account, key`, claims).catch((error: unknown) => {
    throw classifyError(error) === 'conflict' ? new IdempotencyKeyLocked('a key is in use', { cause: error }) : error
  })
  if (dialect.hasRowLocks) await query(RESTORE_LOCK_TIMEOUT)
  return new Set(rows.map(({ account, key }) => `${account} ${key}`))
}

function expiryOf (now: string): string {
  return timeText(Date.parse(now) + LIFETIME_MS)
}

async function loadResponses ({ dialect, query }: Transaction, lost: QueuedCommand[]): Promise<Responses> {
  const columns = { account: 'bigint', key: 'text' } as const
  const rows = await query<StoredResponse>(`
    SELECT i.account, i.key, r.fingerprint, r.record, r.etag FROM ${dialect.jsonRows('i', columns)}
    JOIN accounts a ON a.id = i.account AND a.deleted_at IS NULL
    LEFT JOIN idempotency_records r ON r.account_id = i.account AND r.key = i.key`,
  lost.map(({ context: { account, idempotency } }) => ({ account, key: idempotency!.key })))
  return new Map(rows.map((row) => [`${row.account} ${row.key}`, row]))
}

function replayOf (
  { context }: QueuedCommand, stored: StoredResponse
): WriteResult<unknown> | FastifyError {
  if (stored.fingerprint === null) throw new Error('an idempotency record was lost')
  if (stored.fingerprint !== context.idempotency!.fingerprint) return new IdempotencyKeyReused()
  const record = stored.record === null ? undefined : JSON.parse(stored.record) as unknown
  return { record, etag: stored.etag ?? undefined, replayed: true }
}

function recordKey ({ context: { account, idempotency } }: QueuedCommand): string {
  return `${account} ${idempotency!.key}`
}

/** Stores the responses of completed commands, and deletes the records of refused ones for retries. */
export function storeResponses (
  { dialect, defer }: Transaction, completed: CompletedCommand[], refused: QueuedCommand[]
): void {
  const responses = completed.flatMap(({ entry: { context: { account, idempotency } }, success: { record, etag } }) =>
    idempotency === undefined ? [] : [{ account, key: idempotency.key, record: JSON.stringify(record), etag }])
  defer(`
    UPDATE idempotency_records SET record = i.record, etag = i.etag
    FROM ${dialect.jsonRows('i', { account: 'bigint', key: 'text', record: 'text', etag: 'text' })}
    WHERE account_id = i.account AND idempotency_records.key = i.key`, responses)
  const unused = refused.flatMap(({ context: { account, idempotency } }) =>
    idempotency === undefined ? [] : [{ account, key: idempotency.key }])
  defer(`
    DELETE FROM idempotency_records WHERE (account_id, key) IN
      (SELECT i.account, i.key FROM ${dialect.jsonRows('i', { account: 'bigint', key: 'text' })})`, unused)
}

/** Maximum number of expired records removed in one transaction: few enough that no write waits noticeably for it. */
const SWEEP_SIZE = 500

/** Deletes some of the expired records. Returns `true` when there may be more. */
export const deleteExpiredIdempotencyRecords: Command<object, boolean> = {
  name: 'deleteExpiredIdempotencyRecords',
  async run ({ dialect, query, startedAt: now }, inputs) {
    const deleted = await query<object>(`
      DELETE FROM idempotency_records WHERE (account_id, key) IN (
        SELECT r.account_id, r.key FROM idempotency_records r
        WHERE r.expires_at < (SELECT ${dialect.toTime('i.now')} FROM ${dialect.jsonRows('i', { now: 'text' })})
        LIMIT ${SWEEP_SIZE} ${dialect.forUpdateSkipLocked})
      RETURNING account_id`, [{ now }])
    return inputs.map(() => ({ record: deleted.length === SWEEP_SIZE }))
  }
}

/** Starts the lifetime of an account's claim anew, after the command of the claim has moved the account's clock. */
export async function renewClaim ({ dialect, execute, now }: Transaction, account: number, key: string): Promise<void> {
  await execute(`
    UPDATE idempotency_records SET created_at = ${dialect.toTime('i.now')}, expires_at = ${dialect.toTime('i.expires')}
    FROM ${dialect.jsonRows('i', { account: 'bigint', key: 'text', now: 'text', expires: 'text' })}
    WHERE account_id = i.account AND idempotency_records.key = i.key`,
  [{ account, key, now: now(account), expires: expiryOf(now(account)) }])
}

/**
 * Deletes those of the next 500 records of an account that have expired by its clock, in the order of their keys.
 * Returns the last of the keys, or `undefined` after the last record.
 */
export const deleteExpiredRecordsOfAccount: Command<{ account: number, after: string }, string | undefined> = {
  name: 'deleteExpiredRecordsOfAccount',
  run: async ({ dialect, query, execute, now }, inputs) => await inSequence(inputs, async ({ account, after }) => {
    const { where, orderBy } = dialect.keyset(
      [['r.account_id', '(SELECT i.account FROM i)']], 'r.key', '(SELECT i.after FROM i)', false)
    const rows = await query<{ key: string, expired: boolean | number }>(`
      WITH i AS (
        SELECT i.account, i.after, ${dialect.toTime('i.now')} AS now
        FROM ${dialect.jsonRows('i', { account: 'bigint', after: 'text', now: 'text' })})
      SELECT r.key, r.expires_at < (SELECT i.now FROM i) AS expired
      FROM idempotency_records r WHERE ${where} ORDER BY ${orderBy} LIMIT ${SWEEP_SIZE}`,
    [{ account, after, now: now(account) }])
    const expired = rows.filter(({ expired }) => Boolean(expired))
    // A request that has taken a record over may wait for rows that this transaction holds.
    await execute(`
      DELETE FROM idempotency_records WHERE (account_id, key) IN (
        SELECT r.account_id, r.key FROM ${dialect.jsonRows('i', { account: 'bigint', key: 'text' })}
        JOIN idempotency_records r ON r.account_id = i.account AND r.key = i.key
        ${dialect.hasRowLocks ? 'FOR UPDATE OF r SKIP LOCKED' : ''})`, expired.map(({ key }) => ({ account, key })))
    return { record: rows.length === SWEEP_SIZE ? rows.at(-1)!.key : undefined }
  })
}
