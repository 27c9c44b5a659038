import { idempotencyRecords } from '../../generated/tables.ts'
import { bytesSql } from '../unit-of-work/stored-bytes.ts'
import type { Command } from './command.ts'
import type { Transaction } from './transaction.ts'

/**
 * How long a response is stored: 24 hours, as the contract says. A record expires after its `expires_at`, and not at
 * it: at the last instant, where clocks stop, none does.
 */
export const LIFETIME_MS = 24 * 60 * 60 * 1000

/** Maximum number of expired records removed in one transaction: few enough that no write waits noticeably for it. */
const STEP_SIZE = 500

/** How much a record counts for the stored bytes of its account, in SQL. */
export const RECORD_BYTES = bytesSql(idempotencyRecords, 'idempotency_records')

interface Deleted { account: number, bytes: number }

/** Deletes some of the expired records. Returns `true` when there may be more. */
export const deleteExpiredIdempotencyRecords: Command<object, boolean> = {
  name: 'deleteExpiredIdempotencyRecords',
  async run ({ dialect, query, storedBytes, startedAt: now }) {
    const deleted = await query<Deleted>(`
      DELETE FROM idempotency_records WHERE (account_id, key) IN (
        SELECT r.account_id, r.key FROM idempotency_records r
        WHERE r.expires_at < (SELECT ${dialect.toTime('i.now')} FROM ${dialect.jsonRows('i', { now: 'text' })})
        LIMIT ${STEP_SIZE} ${dialect.locking('FOR UPDATE SKIP LOCKED')})
      RETURNING account_id AS account, ${RECORD_BYTES} AS bytes`, [{ now }])
    for (const { account, bytes } of deleted) storedBytes.add(account, -bytes)
    return { record: deleted.length === STEP_SIZE }
  }
}

/** Starts the lifetime of an account's claim anew, after the command of the claim has moved the account's clock. */
export async function renewClaim ({ dialect, execute, now }: Transaction, account: number, key: string): Promise<void> {
  await execute(`
    UPDATE idempotency_records SET created_at = ${dialect.toTime('i.now')}, expires_at = ${dialect.toTime('i.expires')}
    FROM ${dialect.jsonRows('i', { account: 'bigint', key: 'text', now: 'text', expires: 'text' })}
    WHERE account_id = i.account AND idempotency_records.key = i.key`,
  [{ account, key, now: now(account), expires: now(account, LIFETIME_MS) }])
}

/**
 * Deletes those of the next 500 records of an account that have expired by its clock, in the order of their keys.
 * Returns the last of the keys, or `undefined` after the last record.
 */
export const deleteExpiredRecordsOfAccount: Command<{ account: number, after: string }, string | undefined> = {
  name: 'deleteExpiredRecordsOfAccount',
  run: async ({ dialect, query, storedBytes, now }, { account, after }) => {
    const { where, orderBy } = dialect.keyset(
      [['r.account_id', '(SELECT i.account FROM i)']], 'r.key', '(SELECT i.after FROM i)', false)
    const rows = await query<{ key: string, expired: boolean | number }>(`
      WITH i AS (
        SELECT i.account, i.after, ${dialect.toTime('i.now')} AS now
        FROM ${dialect.jsonRows('i', { account: 'bigint', after: 'text', now: 'text' })})
      SELECT r.key, r.expires_at < (SELECT i.now FROM i) AS expired
      FROM idempotency_records r WHERE ${where} ORDER BY ${orderBy} LIMIT ${STEP_SIZE}`,
    [{ account, after, now: now(account) }])
    const expired = rows.filter(({ expired }) => Boolean(expired))
    // A request that has taken a record over may wait for rows that this transaction holds.
    const deleted = await query<Deleted>(`
      DELETE FROM idempotency_records WHERE (account_id, key) IN (
        SELECT r.account_id, r.key FROM ${dialect.jsonRows('i', { account: 'bigint', key: 'text', now: 'text' })}
        JOIN idempotency_records r ON r.account_id = i.account AND r.key = i.key
          AND r.expires_at < ${dialect.toTime('i.now')}
        ${dialect.locking('FOR UPDATE OF r SKIP LOCKED')})
      RETURNING account_id AS account, ${RECORD_BYTES} AS bytes`, expired.map(({ key }) => ({ account, key, now: now(account) })))
    for (const { bytes } of deleted) storedBytes.add(account, -bytes)
    return { record: rows.length === STEP_SIZE ? rows.at(-1)!.key : undefined }
  }
}
