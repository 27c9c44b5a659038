import { timeText } from '../database/account-clocks.ts'
import { ACCOUNT_DELETED, type Command } from '../database/group-commit/command.ts'
import { recordOf } from '../database/record.ts'
import { idOf } from '../database/table.ts'
import type { Changes } from '../database/unit-of-work/success.ts'
import type { Transaction } from '../database/group-commit/transaction.ts'
import { all, forUpdate, type Write } from '../database/unit-of-work/write.ts'
import { Unauthorized } from '../errors.ts'
import { accounts, apiKeys } from '../generated/tables.ts'
import { checkPreconditions, requirePreconditions, type Conditions } from '../http/conditional-requests.ts'
import type { Credential } from './api-key.ts'
import { ApiKeyLimitReached, ApiKeyNotFound, LastApiKey } from './errors.ts'
import { ACCOUNT_ETAG, keyETag } from './queries.ts'
import {
  AccountWithKeySchema, ApiKeyWithSecretSchema, type AccountWithKey, type ApiKeyWithSecret, type NewAccount,
  type NewApiKey
} from './schemas.ts'

/** Maximum number of API keys of an account, with expired ones. */
export const MAX_API_KEYS = 100

/** @param credential the account's first key */
export const createAccount: Write<{ account: NewAccount, credential: Credential }, AccountWithKey> = {
  name: 'createAccount',
  creates: [accounts, apiKeys],
  decide ({ account: { expiresIn, ...account }, credential: { apiKey, ...credential } }, rows) {
    const expiresAt = expiresIn === undefined ? null : timeText(Date.parse(rows.now) + expiresIn * 1_000)
    const row = rows.insert(accounts, { ...account, createdAt: rows.now, expiresAt })
    rows.insert(apiKeys, { ...credential, accountId: row.id, createdAt: rows.now })
    return { record: recordOf(AccountWithKeySchema, { ...row, apiKey }), etag: ACCOUNT_ETAG }
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
  async run (tx, { account, conditions }) {
    const failed = checkPreconditions(conditions, ACCOUNT_ETAG)
    if (failed !== undefined) return failed
    const { dialect, query } = tx
    const [deleted] = await query(`
      UPDATE accounts SET deleted_at = ${dialect.toTime('i.at')}, expires_at = NULL
      FROM ${dialect.jsonRows('i', { account: 'bigint', at: 'text' })}
      WHERE accounts.id = i.account AND deleted_at IS NULL RETURNING accounts.id`,
    [{ account, at: new Date().toISOString() }])
    // By another request of the group.
    if (deleted === undefined) return new Unauthorized(ACCOUNT_DELETED)
    const changes = { ...await announcedRows(tx, account), accounts: [account], events: [account] }
    return { record: undefined, changes }
  }
}

/** Returns the ids of an account's rows in the tables whose changes are announced on a channel of their name. */
async function announcedRows ({ dialect, query, tables }: Transaction, account: number): Promise<Changes> {
  const changes: Changes = {}
  for (const table of tables.filter(({ isAnnounced }) => isAnnounced)) {
    const { name } = table
    const rows = await query<{ id: number }>(`
      SELECT r.${idOf(table)} AS id FROM ${dialect.jsonRows('i', { account: 'bigint' })}
      JOIN ${name} r ON r.account_id = i.account`, [{ account }])
    changes[name] = rows.map((row) => row.id)
  }
  return changes
}

export const createApiKey: Write<{ key: NewApiKey, credential: Credential }, ApiKeyWithSecret> = {
  name: 'createApiKey',
  needs: () => [all(apiKeys)],
  creates: [apiKeys],
  decide ({ key, credential: { apiKey, ...credential } }, rows) {
    if (rows.all(apiKeys).length >= MAX_API_KEYS) throw new ApiKeyLimitReached(MAX_API_KEYS)
    const expiresAt = key.expiresAt === undefined ? null : new Date(key.expiresAt).toISOString()
    const row = rows.insert(apiKeys, { ...key, ...credential, createdAt: rows.now, expiresAt })
    return { record: recordOf(ApiKeyWithSecretSchema, { ...row, apiKey }), etag: keyETag(null) }
  }
}

/** Revokes a key, but not the last one that may write: two revocations at once must not each count on the other's. */
export const revokeApiKey: Write<{ keyId: number, conditions: Conditions }, undefined> = {
  name: 'revokeApiKey',
  needs: () => [all(apiKeys)],
  decide ({ keyId, conditions }, rows) {
    const key = rows.get(apiKeys, keyId)
    if (key === undefined) throw new ApiKeyNotFound()
    requirePreconditions(conditions, keyETag(key.lastUsedAt))
    const canWrite = rows.all(apiKeys).some(({ id, readOnly, expiresAt }) =>
      id !== keyId && !readOnly && (expiresAt === null || expiresAt > rows.now))
    if (!canWrite) throw new LastApiKey()
    rows.delete(apiKeys, key)
    return { record: undefined, changes: { apiKeys: [keyId] } }
  }
}

/** Stores the last use of a key; a key that was deleted meanwhile is ignored. */
export const markKeyUsed: Command<{ account: number, key: number, at: number }, undefined> = {
  name: 'markKeyUsed',
  needs: ({ account, key }) => ({ account, needs: [forUpdate(apiKeys, key)] }),
  async run (tx, { account, key, at }) {
    const rows = tx.rows(account)
    const row = rows.get(apiKeys, key)
    if (row !== undefined) rows.amend(apiKeys, row, { lastUsedAt: timeText(at) })
    return { record: undefined }
  }
}
