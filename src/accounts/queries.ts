import type { Dialect } from '../database/dialect.ts'
import { etagOf } from '../database/record.ts'
import type { Query, Read } from '../database/reads/query.ts'
import { jsonObject, optional, time, type SerializedRecord } from '../database/sql/json-object.ts'
import type { ListDefinition } from '../database/sql/keyset-pagination.ts'
import { listOf, listRecords, membersOf } from '../database/sql/record-queries.ts'
import { ACCOUNT_DELETED } from '../database/group-commit/command.ts'
import { Unauthorized } from '../errors.ts'
import * as tables from '../generated/tables.ts'
import { AccountSchema, ApiKeySchema } from './schemas.ts'

/** An API key that a request was authenticated with. Times in ms since 1970. */
export interface ApiKeyCredential {
  account: number
  key: number
  prefix: string
  readOnly: boolean
  expiresAt: number | undefined
  /** In real time, whatever the account's clock shows. */
  accountExpiresAt: number | undefined
  lastUsedAt: number | undefined
}

const accountById: Query<{ account: number }, { record: string }> = {
  sql: (dialect) => `
    SELECT i.ord, ${jsonObject(dialect, membersOf(tables.accounts, AccountSchema, 'a'))} AS record
    FROM ${dialect.jsonRows('i', { ord: 'ordinality', account: 'bigint' })}
    JOIN accounts a ON a.id = i.account AND a.deleted_at IS NULL`
}

/** Nothing that an account's record shows ever changes. */
export const ACCOUNT_ETAG = etagOf(1)

export async function findAccount (read: Read, account: number): Promise<SerializedRecord> {
  const row = await read(accountById, { account })
  if (row === undefined) throw new Unauthorized(ACCOUNT_DELETED)
  return { record: row.record, etag: ACCOUNT_ETAG }
}

/**
 * Defines a search for the accounts whose time in a column has passed, the earliest first.
 *
 * @returns a function that takes a time in ms since 1970, and returns ids
 */
export function findAccountsBy (
  column: 'deleted_at' | 'expires_at', limit: number
): (read: Read, until: number) => Promise<number[]> {
  // Not a model call: the first one in a process loads Prisma's query compiler, and blocks all requests for 60 ms.
  const accounts: Query<{ until: string }, { ids: string }> = {
    sql: (dialect) => `
      SELECT i.ord, (
        SELECT '[' || coalesce(string_agg(CAST(x.id AS text), ',' ORDER BY x.${column}), '') || ']' FROM (
          SELECT a.id, a.${column} FROM accounts a WHERE a.${column} <= ${dialect.toTime('i.until')}
          ORDER BY a.${column} LIMIT ${limit}) AS x
      ) AS ids
      FROM ${dialect.jsonRows('i', { ord: 'ordinality', until: 'text' })}`
  }
  return async (read, until) => {
    const row = await read(accounts, { until: new Date(until).toISOString() })
    return JSON.parse(row!.ids) as number[]
  }
}

interface KeyRow {
  account: bigint
  key: bigint
  prefix: string
  readOnly: boolean | number
  expiresAt: string | null
  accountExpiresAt: string | null
  lastUsedAt: string | null
}

/** As a join, PostgreSQL may plan to read the accounts first, while there are few. */
const ofAccount = (value: string): string => `(SELECT ${value} FROM accounts a WHERE a.id = k.account_id)`
const ofLiveAccount = ofAccount('a.deleted_at IS NULL')

const keyByHash: Query<{ hash: string }, KeyRow> = {
  sql: (dialect) => `
    SELECT i.ord, k.account_id AS account, k.id AS key, k.prefix, k.read_only AS "readOnly",
      ${dialect.time('k.expires_at')} AS "expiresAt", ${dialect.time('k.last_used_at')} AS "lastUsedAt",
      ${ofAccount(dialect.time('a.expires_at'))} AS "accountExpiresAt"
    FROM ${dialect.jsonRows('i', { ord: 'ordinality', hash: 'text' })}
    JOIN api_keys k ON k.hash = i.hash AND ${ofLiveAccount}`
}

export async function findKey (read: Read, hash: string): Promise<ApiKeyCredential | undefined> {
  const row = await read(keyByHash, { hash })
  if (row === undefined) return undefined
  return {
    account: Number(row.account),
    key: Number(row.key),
    prefix: row.prefix,
    readOnly: Boolean(row.readOnly),
    expiresAt: timeOf(row.expiresAt),
    accountExpiresAt: timeOf(row.accountExpiresAt),
    lastUsedAt: timeOf(row.lastUsedAt)
  }
}

function timeOf (text: string | null): number | undefined {
  return text === null ? undefined : Date.parse(text)
}

/** Tells whether the account of a key has expired. Its rows may not be erased yet. */
export function hasExpiredAccount ({ accountExpiresAt }: ApiKeyCredential): boolean {
  return accountExpiresAt !== undefined && Date.now() >= accountExpiresAt
}

const keyById: Query<{ key: number }, { id: bigint }> = {
  sql: (dialect) => `
    SELECT i.ord, k.id FROM ${dialect.jsonRows('i', { ord: 'ordinality', key: 'bigint' })}
    JOIN api_keys k ON k.id = i.key AND ${ofLiveAccount}`
}

/** Returns `undefined` when the key was revoked, or its account deleted. */
export async function findKeyById (read: Read, key: number): Promise<object | undefined> {
  return await read(keyById, { key })
}

const keyRecord = (dialect: Dialect): string => jsonObject(dialect, membersOf(tables.apiKeys, ApiKeySchema, 'r', {
  // Stored to the hour, which may lie before the creation.
  lastUsedAt: optional(time('CASE WHEN r.last_used_at < r.created_at THEN r.created_at ELSE r.last_used_at END'))
}))

const keyOfAccount: Query<{ account: number, id: number }, { record: string, lastUsedAt: string | null }> = {
  sql: (dialect) => `
    SELECT i.ord, ${dialect.time('r.last_used_at')} AS "lastUsedAt", ${keyRecord(dialect)} AS record
    FROM ${dialect.jsonRows('i', { ord: 'ordinality', account: 'bigint', id: 'bigint' })}
    JOIN api_keys r ON r.id = i.id AND r.account_id = i.account`
}

/** Returns the entity tag of a key. The time of its last use, to the hour, is all that ever changes. */
export function keyETag (lastUsedAt: string | null): string {
  return etagOf(lastUsedAt === null ? 1 : Math.floor(Date.parse(lastUsedAt) / 3_600_000))
}

/** Finds an API key of an account, or returns `undefined` if the account has no such key. */
export async function findApiKey (read: Read, account: number, id: number): Promise<SerializedRecord | undefined> {
  const row = await read(keyOfAccount, { account, id })
  return row && { record: row.record, etag: keyETag(row.lastUsedAt) }
}

export const keyList: ListDefinition = { ...listOf(tables.apiKeys, ApiKeySchema), record: keyRecord }

export const listKeys = listRecords(keyList)
