import {
  ACCOUNT_DELETED, type Changes, type Command, type CommandResult
} from '../database/group-commit/command.ts'
import { distinct, inSequence, type Transaction } from '../database/group-commit/transaction.ts'
import { Unauthorized } from '../errors.ts'
import { checkPreconditions, type Conditions } from '../http/conditional-requests.ts'
import { createCredential } from './api-key.ts'
import { ApiKeyLimitReached, ApiKeyNotFound, LastApiKey } from './errors.ts'
import { ACCOUNT_ETAG, accountTable, apiKeyTable, keyETag } from './queries.ts'
import { countRows } from './quota.ts'
import type { AccountWithKey, ApiKeyWithSecret, NewAccount, NewApiKey } from './schemas.ts'

/** Maximum number of API keys of an account, with expired ones. */
const MAX_API_KEYS = 100

export const createAccount: Command<{ account: NewAccount }, AccountWithKey> = {
  name: 'createAccount',
  creates: accountTable,
  async run (tx, inputs) {
    const ids = await tx.allocateIds(accountTable, inputs.length)
    const keyIds = await tx.allocateIds(apiKeyTable, inputs.length)
    const keys = inputs.map(() => createCredential())
    tx.insert(accountTable, inputs.map(({ account }, i) => ({ id: ids[i]!, ...account, created_at: tx.startedAt })))
    tx.insert(apiKeyTable, keys.map(({ prefix, hash }, i) =>
      ({ id: keyIds[i]!, account_id: ids[i]!, prefix, hash, created_at: tx.startedAt })))
    return inputs.map(({ account: { name, email } }, i) => {
      const record = {
        id: ids[i]!,
        name,
        createdAt: tx.startedAt,
        apiKey: keys[i]!.apiKey,
        ...(email === undefined ? {} : { email })
      }
      return { record, etag: ACCOUNT_ETAG }
    })
  }
}

/**
 * Marks an account as deleted, which ends its API keys and hides everything that it has: its rows may be millions, and
 * are erased in steps afterwards.
 */
export const deleteAccount: Command<{ account: number, conditions: Conditions }, undefined> = {
  name: 'deleteAccount',
  runsAlone: 'with its kind',
  locksAccount: true,
  async run (tx, inputs) {
    const deleted = new Set<number>()
    return await inSequence(inputs, async ({ account, conditions }) => {
      const failed = deleted.has(account)
        ? new Unauthorized(ACCOUNT_DELETED)
        : checkPreconditions(conditions, ACCOUNT_ETAG)
      if (failed !== undefined) return failed
      deleted.add(account)
      const { dialect, execute } = tx
      await execute(`
        UPDATE accounts SET deleted_at = ${dialect.toTime('i.at')}
        FROM ${dialect.jsonRows('i', { account: 'bigint', at: 'text' })} WHERE accounts.id = i.account`,
      [{ account, at: new Date().toISOString() }])
      const changes = { ...await announcedRows(tx, account), accounts: [account], events: [account] }
      return { record: undefined, changes }
    })
  }
}

/** Returns the ids of an account's rows in the tables whose changes are announced, by channel. */
async function announcedRows ({ dialect, query, tables }: Transaction, account: number): Promise<Changes> {
  const changes: Changes = {}
  for (const { name, id, channel } of tables) {
    if (channel === undefined) continue
    const rows = await query<{ id: number }>(`
      SELECT r.${id} AS id FROM ${dialect.jsonRows('i', { account: 'bigint' })}
      JOIN ${name} r ON r.account_id = i.account`, [{ account }])
    changes[channel] = rows.map((row) => row.id)
  }
  return changes
}

export const createApiKey: Command<{ account: number, key: NewApiKey }, ApiKeyWithSecret> = {
  name: 'createApiKey',
  runsAlone: 'with its kind',
  async run (tx, inputs) {
    const prisma = await tx.prisma()
    const counts = await countRows(tx, apiKeyTable, inputs)
    return await inSequence(inputs, async ({ account, key: { label, readOnly = false, expiresAt } }) => {
      const count = counts.get(account) ?? 0
      if (count >= MAX_API_KEYS) return new ApiKeyLimitReached(MAX_API_KEYS)
      counts.set(account, count + 1)
      const { apiKey, prefix, hash } = createCredential()
      const now = tx.now(account)
      const expires = expiresAt === undefined ? undefined : new Date(expiresAt).toISOString()
      const { id } = await prisma.apiKey.create({
        data: {
          accountId: account, label: label ?? null, prefix, hash, readOnly, createdAt: now, expiresAt: expires ?? null
        },
        select: { id: true }
      })
      const record = {
        id: Number(id),
        prefix,
        readOnly,
        createdAt: now,
        apiKey,
        ...(label === undefined ? {} : { label }),
        ...(expires === undefined ? {} : { expiresAt: expires })
      }
      return { record, etag: keyETag(null) }
    })
  }
}

export const revokeApiKey: Command<{ account: number, keyId: number, conditions: Conditions }, undefined> = {
  name: 'revokeApiKey',
  runsAlone: 'with its kind',
  async run (tx, inputs) {
    const { dialect, execute, now } = tx
    const keys = await lockKeys(tx, distinct(inputs.map(({ account }) => ({ account }))))
    const revoked: Array<{ id: number }> = []
    const results = inputs.map(({ account, keyId: id, conditions }): CommandResult<undefined> => {
      const ofAccount = keys.get(account)
      const key = ofAccount?.get(id)
      if (ofAccount === undefined || key === undefined) return new ApiKeyNotFound()
      const failed = checkPreconditions(conditions, keyETag(key.lastUsedAt))
      if (failed !== undefined) return failed
      const canWrite = [...ofAccount.values()].some((other) =>
        other.id !== id && !other.readOnly && (other.expiresAt === null || other.expiresAt > now(account)))
      if (!canWrite) return new LastApiKey()
      ofAccount.delete(id)
      revoked.push({ id })
      return { record: undefined, changes: { apiKeys: [id] } }
    })
    if (revoked.length > 0) {
      const ids = `SELECT i.id FROM ${dialect.jsonRows('i', { id: 'bigint' })}`
      await execute(`DELETE FROM api_keys WHERE id IN (${ids})`, revoked)
    }
    return results
  }
}

interface LockedKey {
  id: number
  account: number
  readOnly: boolean | number
  lastUsedAt: string | null
  expiresAt: string | null
}

/**
 * Locks all API keys of accounts: two revocations at once must not each count on the other's key.
 *
 * @returns the keys by account and id
 */
async function lockKeys (
  { dialect, query }: Transaction, accounts: Array<{ account: number }>
): Promise<Map<number, Map<number, LockedKey>>> {
  const rows = await query<LockedKey>(`
    SELECT k.id, k.account_id AS account, k.read_only AS "readOnly",
      ${dialect.time('k.last_used_at')} AS "lastUsedAt", ${dialect.time('k.expires_at')} AS "expiresAt"
    FROM api_keys k
    WHERE k.account_id IN (SELECT i.account FROM ${dialect.jsonRows('i', { account: 'bigint' })})
    ORDER BY k.id ${dialect.forUpdate}`, accounts)
  const keys = new Map<number, Map<number, LockedKey>>()
  for (const row of rows) {
    const ofAccount = keys.get(row.account) ?? new Map<number, LockedKey>()
    keys.set(row.account, ofAccount.set(row.id, row))
  }
  return keys
}

/**
 * Stores the last use of keys; a key that was deleted meanwhile is ignored. Rows are updated in id order, because at
 * the turn of an hour every process marks the same keys.
 */
export const markKeyUsed: Command<{ key: number, at: number }, undefined> = {
  name: 'markKeyUsed',
  async run ({ dialect, execute }, inputs) {
    await execute(`
      UPDATE api_keys SET last_used_at = ${dialect.toTime('i.at')}
      FROM ${dialect.jsonRows('i', { key: 'bigint', at: 'text' })} WHERE api_keys.id = i.key`,
    inputs.toSorted((a, b) => a.key - b.key).map(({ key, at }) => ({ key, at: new Date(at).toISOString() })))
    return inputs.map(() => ({ record: undefined }))
  }
}
