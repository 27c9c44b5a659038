import type { FastifyError } from '@fastify/error'
import { IdempotencyKeyReused } from '../../errors.ts'
import type { Command, WriteResult, CommandSuccess, QueuedCommand } from './command.ts'
import { classifyError } from '../error-classification.ts'
import type { Transaction } from './transaction.ts'

/** How long an answer is kept, in ms. */
const LIFETIME_MS = 24 * 60 * 60 * 1000

interface Claims {
  /** Entries that are to be run. */
  fresh: QueuedCommand[]
  /** Entries whose key was used before, with what they are answered. */
  replays: Array<{ entry: QueuedCommand, result: WriteResult<unknown> | FastifyError }>
}

/** Another transaction has one of the keys, for longer than anybody waits. */
export class IdempotencyKeyLocked extends Error {}

/**
 * Claims the Idempotency-Keys of a group, first in the transaction: who loses the race for a key waits
 * on the unique index until the winner has committed, and then finds its answer. Keys are claimed in
 * order, so that two groups never wait for each other.
 *
 * @throws KeysHeld
 */
export async function claimIdempotencyKeys ({ dialect, query, now }: Transaction, group: QueuedCommand[]): Promise<Claims> {
  const keyed = group.filter(({ context }) => context.idempotency !== undefined)
  if (keyed.length === 0) return { fresh: group, replays: [] }

  const expires = new Date(Date.parse(now) + LIFETIME_MS).toISOString()
  const claims = keyed.map(({ context: { account, idempotency } }) => ({ account, ...idempotency, now, expires }))
  // An expired record is as good as none: its row is taken over.
  const won = await query<{ account: number, key: string }>(`
    INSERT INTO idempotency_records (account_id, key, fingerprint, created_at, expires_at)
    SELECT i.account, i.key, i.fingerprint, ${dialect.toTime('i.now')}, ${dialect.toTime('i.expires')}
    FROM ${dialect.jsonRows('i', { account: 'bigint', key: 'text', fingerprint: 'text', now: 'text', expires: 'text' })}
    WHERE true ORDER BY i.account, i.key
    ON CONFLICT (account_id, key) DO UPDATE
      SET fingerprint = excluded.fingerprint, record = NULL, etag = NULL, created_at = excluded.created_at, expires_at = excluded.expires_at
      WHERE idempotency_records.expires_at <= excluded.created_at
    RETURNING account_id AS account, key`, claims).catch((error: unknown) => {
    throw classifyError(error) === 'conflict' ? new IdempotencyKeyLocked('a key is in use', { cause: error }) : error
  })
  if (won.length === keyed.length) return { fresh: group, replays: [] }

  const winners = new Set(won.map(({ account, key }) => `${account} ${key}`))
  const lost = keyed.filter(({ context }) => !winners.has(`${context.account} ${context.idempotency!.key}`))
  const kept = await query<{ account: number, key: string, fingerprint: string, record: string | null, etag: string | null }>(`
    SELECT r.account_id AS account, r.key, r.fingerprint, r.record, r.etag FROM idempotency_records r
    JOIN ${dialect.jsonRows('i', { account: 'bigint', key: 'text' })} ON r.account_id = i.account AND r.key = i.key`,
  lost.map(({ context: { account, idempotency } }) => ({ account, key: idempotency!.key })))
  const records = new Map(kept.map((row) => [`${row.account} ${row.key}`, row]))
  const replays = lost.map((entry) => {
    const { account, idempotency } = entry.context
    const row = records.get(`${account} ${idempotency!.key}`)
    if (row === undefined) throw new Error('an idempotency record was lost')
    const result = row.fingerprint === idempotency!.fingerprint
      ? { record: row.record === null ? undefined : JSON.parse(row.record) as unknown, etag: row.etag ?? undefined, replayed: true }
      : new IdempotencyKeyReused()
    return { entry, result }
  })
  const settled = new Set(lost)
  return { fresh: group.filter((entry) => !settled.has(entry)), replays }
}

/** Keeps the answers of what was done, and forgets the keys of what failed: they may be tried again. */
export function storeResponses ({ dialect, defer }: Transaction, done: Array<{ entry: QueuedCommand, done: CommandSuccess<unknown> }>, failed: QueuedCommand[]): void {
  const answers = done.flatMap(({ entry: { context: { account, idempotency } }, done: { record, etag } }) =>
    idempotency === undefined ? [] : [{ account, key: idempotency.key, record: JSON.stringify(record), etag }])
  defer((parameter) => `
    UPDATE idempotency_records SET record = i.record, etag = i.etag
    FROM ${dialect.jsonRows('i', { account: 'bigint', key: 'text', record: 'text', etag: 'text' }, parameter)}
    WHERE account_id = i.account AND idempotency_records.key = i.key`, answers)
  const forgotten = failed.flatMap(({ context: { account, idempotency } }) =>
    idempotency === undefined ? [] : [{ account, key: idempotency.key }])
  defer((parameter) => `
    DELETE FROM idempotency_records WHERE (account_id, key) IN
      (SELECT i.account, i.key FROM ${dialect.jsonRows('i', { account: 'bigint', key: 'text' }, parameter)})`, forgotten)
}

/** Expired records removed in one transaction: few enough that no write waits noticeably for it. */
const SWEEP_SIZE = 500

/** Removes some of the expired records; `true` when there may be more. */
export const deleteExpiredIdempotencyRecords: Command<object, boolean> = {
  name: 'forgetExpired',
  async run ({ dialect, query, now }, inputs) {
    const gone = await query<object>(`
      DELETE FROM idempotency_records WHERE (account_id, key) IN (
        SELECT r.account_id, r.key FROM idempotency_records r
        WHERE r.expires_at <= (SELECT ${dialect.toTime('i.now')} FROM ${dialect.jsonRows('i', { now: 'text' })})
        LIMIT ${SWEEP_SIZE} ${dialect.forUpdateSkipLocked})
      RETURNING account_id`, [{ now }])
    return inputs.map(() => ({ record: gone.length === SWEEP_SIZE }))
  }
}
