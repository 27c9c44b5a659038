import type { ChangeLog } from '../database/group-commit/command.ts'
import type { Transaction } from '../database/group-commit/transaction.ts'

/**
 * Tells every process that the lab of some accounts changed: processes poll for the latest changes. The time of a
 * change is later than that of the one before it, so that a process never takes one for the other.
 */
export const labChanges: ChangeLog = {
  channel: 'lab',
  write: (dialect, accounts, now) => ({
    sql: `
      INSERT INTO lab_states (account_id, changed_at)
      SELECT i.account, ${dialect.toTime('i.now')} FROM ${dialect.jsonRows('i', { account: 'bigint', now: 'text' })}
      WHERE true ORDER BY i.account
      ON CONFLICT (account_id) DO UPDATE SET changed_at =
        CASE WHEN excluded.changed_at > lab_states.changed_at THEN excluded.changed_at
        ELSE ${dialect.later(dialect.time('lab_states.changed_at'), '0.001')} END`,
    values: [JSON.stringify(accounts.map((account) => ({ account, now })))]
  })
}

/** Counts a restore of an account's store, this one included. */
export async function countRestore ({ dialect, query, startedAt }: Transaction, account: number): Promise<number> {
  const [row] = await query<{ restores: number }>(`
    INSERT INTO lab_states (account_id, restores, changed_at)
    SELECT i.account, 1, ${dialect.toTime('i.now')} FROM ${dialect.jsonRows('i', { account: 'bigint', now: 'text' })}
    WHERE true
    ON CONFLICT (account_id) DO UPDATE SET restores = lab_states.restores + 1
    RETURNING restores`, [{ account, now: startedAt }])
  return row!.restores
}
