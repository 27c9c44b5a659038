import type { FastifyError } from '@fastify/error'
import { IdempotencyKeyReused } from '../../errors.ts'
import { oncePerDialect, type Dialect } from '../dialect.ts'
import type { CompletedCommand, QueuedCommand, WriteResult } from '../group-commit/command.ts'
import { LIFETIME_MS } from '../group-commit/idempotency-records.ts'
import type { OwnStatement } from '../statements.ts'
import { bytesOfTexts, type StoredBytes } from './stored-bytes.ts'

/** The answer of an earlier request, or the error of another one with the same key. */
export type Replay = WriteResult<unknown> | FastifyError

/** The statements that claim the keys of a group, and what their rows say. */
export interface Claims {
  /** The first fails if another process keeps a key locked. */
  statements: OwnStatement[]
  resultOf: (rows: object[][]) => ClaimResult
}

export interface ClaimResult {
  /** The answers of the writes whose keys were used before. */
  replays: Map<QueuedCommand, Replay>
  /** The sizes of expired records that were taken over. */
  expired: Array<{ account: number, bytes: number }>
}

interface StoredResponse {
  account: number
  key: string
  fingerprint: string
  record: string | null
  etag: string | null
  /** By the account's clock. */
  createdAt: string
  /** A lifetime later, unless the record was taken over since. */
  expiresAt: string
}

/**
 * Claims Idempotency-Keys, in one order for all groups: a transaction that loses the race for a key waits on the unique
 * index until the winner has committed, and then finds its response. An expired record is taken over, and keeps its
 * response until the next one is stored: its size is loaded. Times follow the clocks of the accounts.
 */
export function claimsOf (dialect: Dialect, keyed: readonly QueuedCommand[]): Claims {
  const now = Date.now()
  const [at, expires] = [now, now + LIFETIME_MS].map((ms) => new Date(ms).toISOString())
  const claims = keyed.map(({ context: { account, idempotency } }) => ({ account, ...idempotency, now: at, expires }))
  const keys = claims.map(({ account, key }) => ({ account, key }))
  const { claim, load } = textsOf(dialect)
  return {
    statements: [{ sql: claim, values: [JSON.stringify(claims)] }, { sql: load, values: [JSON.stringify(keys)] }],
    resultOf ([claimRows, loadedRows]) {
      const claimed = new Set((claimRows as StoredResponse[]).map(keyOf))
      const stored = new Map((loadedRows as StoredResponse[]).map((response) => [keyOf(response), response]))
      const replays: ClaimResult['replays'] = new Map()
      const expired: ClaimResult['expired'] = []
      for (const entry of keyed) {
        const { account, idempotency } = entry.context
        const key = `${account} ${idempotency!.key}`
        const response = stored.get(key)
        // Without a record, the account was deleted: its writes are refused.
        if (response === undefined) continue
        if (!claimed.has(key)) replays.set(entry, replayOf(response, idempotency!.fingerprint))
        else if (isTakenOver(response)) expired.push({ account: response.account, bytes: bytesOf(response) })
      }
      return { replays, expired }
    }
  }
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
    bytes.add(account, bytesOf({ key, fingerprint, record, etag }))
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
      RETURNING account_id AS account, key`,
    load: `
      SELECT r.account_id AS account, r.key, r.fingerprint, r.record, r.etag,
        ${dialect.time('r.created_at')} AS "createdAt", ${dialect.time('r.expires_at')} AS "expiresAt"
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

interface Texts { key: string, fingerprint: string, record: string | null | undefined, etag: string | null | undefined }

function bytesOf ({ key, fingerprint, record, etag }: Texts): number {
  return bytesOfTexts(key, fingerprint, record, etag)
}

function isTakenOver ({ createdAt, expiresAt }: StoredResponse): boolean {
  return Date.parse(expiresAt) - Date.parse(createdAt) !== LIFETIME_MS
}

function keyOf ({ account, key }: StoredResponse): string {
  return `${account} ${key}`
}

function replayOf (stored: StoredResponse, fingerprint: string): Replay {
  if (stored.fingerprint !== fingerprint) return new IdempotencyKeyReused()
  const record = stored.record === null ? undefined : JSON.parse(stored.record) as unknown
  return { record, etag: stored.etag ?? undefined, replayed: true, firstAt: Date.parse(stored.expiresAt) - LIFETIME_MS }
}
