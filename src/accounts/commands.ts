import { etagOf, checkPreconditions, type Conditions } from '../http/conditional-requests.ts'
import { createCredential } from './api-key.ts'
import type { Command, CommandResult } from '../database/group-commit/command.ts'
import type { Dialect } from '../database/dialect.ts'
import { boolean, integer, jsonObject, optional, text, time, type SerializedRecord } from '../database/sql/json-object.ts'
import { pageQuery, type ListDefinition, type Page, type PageRequest } from '../database/sql/keyset-pagination.ts'
import type { Query, Read } from '../database/read-batching.ts'
import type { Transaction } from '../database/group-commit/transaction.ts'
import { ApiKeyNotFound, LastApiKey, Unauthorized } from '../errors.ts'
import type { AccountWithKey, ApiKeyWithSecret, NewAccount, NewApiKey } from './schemas.ts'

/** Who asks, and what the key may do. Times in ms since 1970. */
export interface ApiKeyCredential {
  account: number
  key: number
  readOnly: boolean
  expiresAt: number | undefined
  lastUsedAt: number | undefined
}

const accountById: Query<{ account: number }, { record: string }> = {
  sql: (dialect) => `
    SELECT i.ord, ${jsonObject(dialect, {
      id: integer('a.id'),
      name: text('a.name'),
      email: optional(text('a.email')),
      createdAt: time('a.created_at')
    })} AS record
    FROM ${dialect.jsonRows('i', { ord: 'ordinality', account: 'bigint' })}
    JOIN accounts a ON a.id = i.account`
}

/** Nothing of an account changes but what no answer shows. */
const ACCOUNT_ETAG = etagOf(1)

export async function findAccount (read: Read, account: number): Promise<SerializedRecord> {
  const row = await read(accountById, { account })
  if (row === undefined) throw new Unauthorized('The account of this API key was deleted')
  return { record: row.record, etag: ACCOUNT_ETAG }
}

const keyByHash: Query<{ hash: string }, { account: bigint, key: bigint, readOnly: boolean | number, expiresAt: string | null, lastUsedAt: string | null }> = {
  sql: (dialect) => `
    SELECT i.ord, k.account_id AS account, k.id AS key, k.read_only AS "readOnly",
      ${dialect.time('k.expires_at')} AS "expiresAt", ${dialect.time('k.last_used_at')} AS "lastUsedAt"
    FROM ${dialect.jsonRows('i', { ord: 'ordinality', hash: 'text' })}
    JOIN api_keys k ON k.hash = i.hash`
}

export async function findKey (read: Read, hash: string): Promise<ApiKeyCredential | undefined> {
  const row = await read(keyByHash, { hash })
  if (row === undefined) return undefined
  return {
    account: Number(row.account),
    key: Number(row.key),
    readOnly: Boolean(row.readOnly),
    expiresAt: row.expiresAt === null ? undefined : Date.parse(row.expiresAt),
    lastUsedAt: row.lastUsedAt === null ? undefined : Date.parse(row.lastUsedAt)
  }
}

const keyById: Query<{ key: number }, { id: bigint }> = {
  sql: (dialect) => `
    SELECT i.ord, k.id FROM ${dialect.jsonRows('i', { ord: 'ordinality', key: 'bigint' })}
    JOIN api_keys k ON k.id = i.key`
}

/** Whether a key is still there; `undefined` when it was revoked. */
export async function findKeyById (read: Read, key: number): Promise<object | undefined> {
  return await read(keyById, { key })
}

export const keys: ListDefinition = {
  name: 'API keys',
  from: 'api_keys k',
  record: (dialect: Dialect) => jsonObject(dialect, {
    id: integer('k.id'),
    label: optional(text('k.label')),
    prefix: text('k.prefix'),
    readOnly: boolean('k.read_only'),
    createdAt: time('k.created_at'),
    lastUsedAt: optional(time('k.last_used_at')),
    expiresAt: optional(time('k.expires_at'))
  }),
  filters: {},
  indexes: [{ name: 'api_keys_account_id_id_idx', columns: ['k.account_id'], position: 'k.id' }]
}

export async function listKeys (read: Read, account: number, page: PageRequest): Promise<Page> {
  return await read(...pageQuery(keys, page, account)) as Page
}

export const createAccount: Command<{ account: NewAccount }, AccountWithKey> = {
  name: 'createAccount',
  async run ({ client, now }, inputs) {
    const prisma = await client()
    const outcomes: Array<CommandResult<AccountWithKey>> = []
    for (const { account: { name, email } } of inputs) {
      const { apiKey, prefix, hash } = createCredential()
      const { id } = await prisma.account.create({
        data: { name, email: email ?? null, createdAt: now, apiKeys: { create: { prefix, hash, createdAt: now } } },
        select: { id: true }
      })
      const record = { id: Number(id), name, ...(email === undefined ? {} : { email }), createdAt: now, apiKey }
      outcomes.push({ record, etag: ACCOUNT_ETAG })
    }
    return outcomes
  }
}

export const deleteAccount: Command<{ account: number, conditions: Conditions }, undefined> = {
  name: 'deleteAccount',
  async run (tx, inputs) {
    const outcomes: Array<CommandResult<undefined>> = []
    for (const { account, conditions } of inputs) {
      const refused = checkPreconditions(conditions, ACCOUNT_ETAG)
      outcomes.push(refused ?? { record: undefined, changedWebhooks: await eraseAccount(tx, account) })
    }
    return outcomes
  }
}

/**
 * Locks what groups decide about in their order, then erases children before parents. With a group that settles
 * messages or deliveries at the same time it may meet a deadlock, which the database ends: one of them is tried again.
 */
async function eraseAccount ({ client, dialect, query }: Transaction, account: number): Promise<number[]> {
  const input = dialect.jsonRows('i', { account: 'bigint' })
  const owned = (table: string): string => `SELECT id FROM ${table} WHERE account_id IN (SELECT i.account FROM ${input}) ORDER BY id ${dialect.forUpdate}`
  if (dialect.forUpdate !== '') {
    // Counted, because an account may have a million pets.
    for (const table of ['categories', 'pets']) await query(`SELECT count(*) FROM (${owned(table)}) AS held`, [{ account }])
  }
  const webhooks = await query<{ id: number }>(owned('webhooks'), [{ account }])
  if (dialect.forUpdate !== '') await query(`SELECT id FROM accounts WHERE id IN (SELECT i.account FROM ${input}) ${dialect.forUpdate}`, [{ account }])
  const prisma = await client()
  const where = { accountId: BigInt(account) }
  await prisma.delivery.deleteMany({ where })
  await prisma.webhook.deleteMany({ where })
  await prisma.order.deleteMany({ where })
  await prisma.inventoryItem.deleteMany({ where })
  await prisma.pet.deleteMany({ where })
  await prisma.category.deleteMany({ where })
  await prisma.message.deleteMany({ where })
  await prisma.event.deleteMany({ where })
  await prisma.idempotencyRecord.deleteMany({ where })
  await prisma.apiKey.deleteMany({ where })
  await prisma.account.deleteMany({ where: { id: BigInt(account) } })
  return webhooks.map(({ id }) => id)
}

export const createApiKey: Command<{ account: number, key: NewApiKey }, ApiKeyWithSecret> = {
  name: 'createApiKey',
  async run ({ client, now }, inputs) {
    const prisma = await client()
    const outcomes: Array<CommandResult<ApiKeyWithSecret>> = []
    for (const { account, key: { label, readOnly = false, expiresAt } } of inputs) {
      const { apiKey, prefix, hash } = createCredential()
      const expires = expiresAt === undefined ? undefined : new Date(expiresAt).toISOString()
      const { id } = await prisma.apiKey.create({
        data: { accountId: BigInt(account), label: label ?? null, prefix, hash, readOnly, createdAt: now, expiresAt: expires ?? null },
        select: { id: true }
      })
      const record = {
        id: Number(id),
        ...(label === undefined ? {} : { label }),
        prefix,
        readOnly,
        createdAt: now,
        ...(expires === undefined ? {} : { expiresAt: expires }),
        apiKey
      }
      outcomes.push({ record, etag: etagOf(1) })
    }
    return outcomes
  }
}

export const revokeApiKey: Command<{ account: number, keyId: number, conditions: Conditions }, undefined> = {
  name: 'revokeApiKey',
  async run ({ client, dialect, query, now }, inputs) {
    const prisma = await client()
    const outcomes: Array<CommandResult<undefined>> = []
    for (const { account, keyId, conditions } of inputs) {
      // All keys of the account: two revocations at once must not each count on the other's key.
      const rows = await query<{ id: number, readOnly: boolean | number, expiresAt: string | null }>(`
        SELECT k.id, k.read_only AS "readOnly", ${dialect.time('k.expires_at')} AS "expiresAt" FROM api_keys k
        WHERE k.account_id IN (SELECT i.account FROM ${dialect.jsonRows('i', { account: 'bigint' })}) ORDER BY k.id ${dialect.forUpdate}`, [{ account }])
      const others = rows.filter(({ id, readOnly, expiresAt }) => id !== keyId && !readOnly && (expiresAt === null || expiresAt > now))
      const refused = !rows.some(({ id }) => id === keyId)
        ? new ApiKeyNotFound()
        : checkPreconditions(conditions, etagOf(1)) ?? (others.length === 0 ? new LastApiKey() : undefined)
      if (refused === undefined) await prisma.apiKey.delete({ where: { id: BigInt(keyId) } })
      outcomes.push(refused ?? { record: undefined })
    }
    return outcomes
  }
}

/** A key that is gone by now is no matter. In order, because at the turn of an hour every process marks the same keys. */
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
