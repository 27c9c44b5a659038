import { etagOf } from '../database/entity-tag.ts'
import type { Changes, Command, CommandResult } from '../database/group-commit/command.ts'
import { inSequence, type Transaction } from '../database/group-commit/transaction.ts'
import { checkPreconditions, type Conditions } from '../http/conditional-requests.ts'
import { createCredential } from './api-key.ts'
import { ApiKeyNotFound, LastApiKey } from './errors.ts'
import { ACCOUNT_ETAG } from './queries.ts'
import type { AccountWithKey, ApiKeyWithSecret, NewAccount, NewApiKey } from './schemas.ts'

export const createAccount: Command<{ account: NewAccount }, AccountWithKey> = {
  name: 'createAccount',
  async run (tx, inputs) {
    const { now } = tx
    const prisma = await tx.prisma()
    return await inSequence(inputs, async ({ account: { name, email } }) => {
      const { apiKey, prefix, hash } = createCredential()
      const { id } = await prisma.account.create({
        data: { name, email: email ?? null, createdAt: now, apiKeys: { create: { prefix, hash, createdAt: now } } },
        select: { id: true }
      })
      const record = { id: Number(id), name, ...(email === undefined ? {} : { email }), createdAt: now, apiKey }
      return { record, etag: ACCOUNT_ETAG }
    })
  }
}

export const deleteAccount: Command<{ account: number, conditions: Conditions }, undefined> = {
  name: 'deleteAccount',
  run: async (tx, inputs) => await inSequence(inputs, async ({ account, conditions }) => {
    const failed = checkPreconditions(conditions, ACCOUNT_ETAG)
    return failed ?? { record: undefined, changes: await eraseAccount(tx, account) }
  })
}

/**
 * Locks the rows that groups decide about, in their order, then erases children before parents. With a group that
 * completes messages or deliveries at the same time it may meet a deadlock, which the database ends: one of the two
 * is tried again.
 */
async function eraseAccount (tx: Transaction, account: number): Promise<Changes> {
  const { dialect, query, execute, tables } = tx
  const input = dialect.jsonRows('i', { account: 'bigint' })
  const inputs = [{ account }]
  const ofAccount = `IN (SELECT i.account FROM ${input})`
  const changes: Changes = {}
  for (const { name, id, hasLockedRows, channel } of tables) {
    const rows = `SELECT ${id} AS id FROM ${name} WHERE account_id ${ofAccount} ORDER BY ${id} ${dialect.forUpdate}`
    if (channel !== undefined) {
      changes[channel] = (await query<{ id: number }>(rows, inputs)).map((row) => row.id)
    } else if (hasLockedRows === true && dialect.hasRowLocks) {
      // Counted, because an account may have a million pets.
      await query(`SELECT count(*) FROM (${rows}) AS locked`, inputs)
    }
  }
  if (dialect.hasRowLocks) await query(`SELECT id FROM accounts WHERE id ${ofAccount} ${dialect.forUpdate}`, inputs)
  for (const { name } of tables.toReversed()) await execute(`DELETE FROM ${name} WHERE account_id ${ofAccount}`, inputs)
  await execute(`DELETE FROM accounts WHERE id ${ofAccount}`, inputs)
  return changes
}

export const createApiKey: Command<{ account: number, key: NewApiKey }, ApiKeyWithSecret> = {
  name: 'createApiKey',
  async run (tx, inputs) {
    const { now } = tx
    const prisma = await tx.prisma()
    return await inSequence(inputs, async ({ account, key: { label, readOnly = false, expiresAt } }) => {
      const { apiKey, prefix, hash } = createCredential()
      const expires = expiresAt === undefined ? undefined : new Date(expiresAt).toISOString()
      const { id } = await prisma.apiKey.create({
        data: {
          accountId: account, label: label ?? null, prefix, hash, readOnly, createdAt: now, expiresAt: expires ?? null
        },
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
      return { record, etag: etagOf(1) }
    })
  }
}

export const revokeApiKey: Command<{ account: number, keyId: number, conditions: Conditions }, undefined> = {
  name: 'revokeApiKey',
  async run (tx, inputs) {
    const { dialect, query, now } = tx
    const prisma = await tx.prisma()
    return await inSequence(inputs, async ({ account, keyId, conditions }): Promise<CommandResult<undefined>> => {
      // All keys of the account are locked: two revocations at once must not each count on the other's key.
      const rows = await query<{ id: number, readOnly: boolean | number, expiresAt: string | null }>(`
        SELECT k.id, k.read_only AS "readOnly", ${dialect.time('k.expires_at')} AS "expiresAt" FROM api_keys k
        WHERE k.account_id IN (SELECT i.account FROM ${dialect.jsonRows('i', { account: 'bigint' })})
        ORDER BY k.id ${dialect.forUpdate}`, [{ account }])
      if (!rows.some(({ id }) => id === keyId)) return new ApiKeyNotFound()
      const failed = checkPreconditions(conditions, etagOf(1))
      if (failed !== undefined) return failed
      const canWrite = rows.some(({ id, readOnly, expiresAt }) =>
        id !== keyId && !readOnly && (expiresAt === null || expiresAt > now))
      if (!canWrite) return new LastApiKey()
      await prisma.apiKey.delete({ where: { id: keyId } })
      return { record: undefined }
    })
  }
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
