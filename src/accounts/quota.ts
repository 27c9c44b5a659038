import { distinct, type Transaction } from '../database/group-commit/transaction.ts'
import type { Table } from '../database/table.ts'

/**
 * Counts the rows that accounts have in a table, and makes other groups that count wait until this one has ended. The
 * account's own row is locked last of all, by the event log; every account has an API key, so its keys are locked in
 * its place. A command that counts runs alone, because other commands of its group may hold rows already.
 *
 * @param condition an SQL condition on a row `r`; `i.now` is the time of the account
 */
export async function countRows (
  { dialect, query, now }: Transaction, { name }: Table, inputs: Array<{ account: number }>, condition = 'true'
): Promise<Map<number, number>> {
  const accounts = distinct(inputs.map(({ account }) => ({ account, now: now(account) })))
  const input = dialect.jsonRows('i', { account: 'bigint', now: 'text' })
  if (dialect.hasRowLocks) {
    await query(`
      SELECT k.id FROM api_keys k WHERE k.account_id IN (SELECT i.account FROM ${input})
      ORDER BY k.id ${dialect.forUpdate}`, accounts)
  }
  const counts = await query<{ account: number, count: number }>(`
    SELECT i.account, (SELECT count(*) FROM ${name} r WHERE r.account_id = i.account AND ${condition}) AS count
    FROM ${input}`, accounts)
  return new Map(counts.map(({ account, count }) => [account, count]))
}
