import type { FastifyError } from '@fastify/error'
import { IdempotencyKeyReused } from '../../errors.ts'
import { oncePerDialect, type Dialect } from '../dialect.ts'
import {
  idempotencyScope, scopeOf, type CompletedCommand, type QueuedCommand, type WriteResult
} from '../group-commit/command.ts'
import { LIFETIME_MS, RECORD_BYTES } from '../group-commit/idempotency-records.ts'
import { queryRows, type OwnStatement, type Run } from '../statements.ts'
import { bytesOfTexts, type StoredBytes } from './stored-bytes.ts'

/** The answer of an earlier request, or the error of another one with the same key. */
export type Replay = WriteResult<unknown> | FastifyError

/** A row of the claims: a key that was not used before, or whose record had expired. */
interface Claimed {
  account: number
  key: string
  /** The size of the expired record that it takes over, or 0. */
  bytes: number
}

interface StoredResponse {
  account: number
  key: string
  fingerprint: string
  record: string | null
  etag: string | null
  /** By the account's clock. */
  expiresAt: string
}

/**
 * Returns the statement that claims Idempotency-Keys, in one order for all groups: a transaction that loses the race
 * for a key waits on the unique index until the winner has committed. An expired record is taken over, and keeps its
 * response until the next one is stored. Times follow the clocks of the accounts. It fails if another process keeps a
 * key locked.
 */
export function claimOf (dialect: Dialect, keyed: readonly QueuedCommand[]): OwnStatement {
  const now = Date.now()
  const [at, expires] = [now, now + LIFETIME_MS].map((ms) => new Date(ms).toISOString())
  const claims = keyed.map(({ context: { account, idempotency } }) => ({ account, ...idempotency, now: at, expires }))
  return { sql: textsOf(dialect).claim, values: [JSON.stringify(claims)] }
}

/**
 * Returns the answers of writes whose keys were used before, without those of deleted accounts, which have none.
 *
 * @param claimed the rows of the claims
 * @param bytes gets the sizes of expired records, which the next responses replace
 */
export async function replaysOf (
  run: Run, dialect: Dialect, keyed: readonly QueuedCommand[], claimed: object[], bytes: StoredBytes
): Promise<Map<QueuedCommand, Replay>> {
  const scopes = new Set<string>()
  for (const { account, key, bytes: expired } of claimed as Claimed[]) {
    scopes.add(scopeOf(account, key))
    bytes.add(account, -expired)
  }
  const unclaimed = keyed.filter((entry) => !scopes.has(idempotencyScope(entry)))
  const replays = new Map<QueuedCommand, Replay>()
  if (unclaimed.length === 0) return replays
  const keys = unclaimed.map(({ context: { account, idempotency } }) => ({ account, key: idempotency!.key }))
  const rows = await queryRows<StoredResponse>(run, textsOf(dialect).load, [JSON.stringify(keys)])
  const stored = new Map(rows.map((response) => [scopeOf(response.account, response.key), response]))
  for (const entry of unclaimed) {
    const response = stored.get(idempotencyScope(entry))
    if (response !== undefined) replays.set(entry, replayOf(response, entry.context.idempotency!.fingerprint))
  }
  return replays
}

/**
 * Returns the statements that store responses, and delete the claims of refused writes for their retries.
 *
 * @param bytes gets what they add
 */
export function responsesOf (
  dialect: Dialect, completed: readonly CompletedCommand[], unused: readonly QueuedCommand[], bytes: StoredBytes
): OwnStatement[] {
  const stored = completed.flatMap(({ entry: { context: { account, idempotency } }, success }) => {
    if (account === null || idempotency === undefined) return []
    const { key, fingerprint } = idempotency
    const [record, etag] = [JSON.stringify(success.record), success.etag]
    bytes.add(account, bytesOfTexts(key, fingerprint, record, etag))
    return [{ account, key, record, etag }]
  })
  const deleted = unused.flatMap(({ context: { account, idempotency } }) =>
    idempotency === undefined ? [] : [{ account, key: idempotency.key }])
  const { store, remove } = textsOf(dialect)
  return [
    ...stored.length === 0 ? [] : [{ sql: store, values: [JSON.stringify(stored)] }],
    ...deleted.length === 0 ? [] : [{ sql: remove, values: [JSON.stringify(deleted)] }]
  ]
}

const textsOf = oncePerDialect((dialect) => {
  const keys = { account: 'bigint', key: 'text' } as const
  const later = (time: string): string => dialect.later(`i.${time}`, 'a.clock_offset_seconds')
  const isTakenOver = `expires_at <> ${dialect.later(dialect.time('created_at'), `${LIFETIME_MS / 1000}`)}`
  return {
    claim: `
      INSERT INTO idempotency_records (account_id, key, fingerprint, created_at, expires_at)
      SELECT i.account, i.key, i.fingerprint, ${later('now')}, ${later('expires')}
      FROM ${dialect.jsonRows('i', { ...keys, fingerprint: 'text', now: 'text', expires: 'text' })}
      JOIN accounts a ON a.id = i.account AND a.deleted_at IS NULL
      WHERE true ORDER BY i.account, i.key
      ON CONFLICT (account_id, key) DO UPDATE
        SET fingerprint = excluded.fingerprint, expires_at = excluded.expires_at
        WHERE idempotency_records.expires_at < excluded.created_at
      RETURNING account_id AS account, key, CASE WHEN ${isTakenOver} THEN ${RECORD_BYTES} ELSE 0 END AS bytes`,
    load: `
      SELECT r.account_id AS account, r.key, r.fingerprint, r.record, r.etag,
        ${dialect.time('r.expires_at')} AS "expiresAt"
      FROM ${dialect.jsonRows('i', keys)}
      JOIN accounts a ON a.id = i.account AND a.deleted_at IS NULL
      JOIN idempotency_records r ON r.account_id = i.account AND r.key = i.key`,
    store: `
      UPDATE idempotency_records SET record = i.record, etag = i.etag
      FROM ${dialect.jsonRows('i', { ...keys, record: 'text', etag: 'text' })}
      WHERE account_id = i.account AND idempotency_records.key = i.key`,
    remove: `
      DELETE FROM idempotency_records WHERE (account_id, key) IN
        (SELECT i.account, i.key FROM ${dialect.jsonRows('i', keys)})`
  }
})

function replayOf (stored: StoredResponse, fingerprint: string): Replay {
  if (stored.fingerprint !== fingerprint) return new IdempotencyKeyReused()
  const record = stored.record === null ? undefined : JSON.parse(stored.record) as unknown
  return { record, etag: stored.etag ?? undefined, replayed: true, firstAt: Date.parse(stored.expiresAt) - LIFETIME_MS }
}
