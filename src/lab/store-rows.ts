import type { Command } from '../database/group-commit/command.ts'
import { inSequence, type Transaction } from '../database/group-commit/transaction.ts'
import { STORED_TABLES } from './stored-rows.ts'

/** Limit what one transaction copies or replaces, so that no other account waits for it: records, and their texts. */
export const MAX_STORE_ROWS = 10_000
const MAX_STORE_BYTES = 8_388_608

/** Tells whether a store is larger than one transaction may replace. Looks at no more rows than the limit. */
export async function exceedsLimit ({ dialect, query }: Transaction, account: number): Promise<boolean> {
  const rows = STORED_TABLES.map(({ name, columns }) => {
    const texts = Object.keys(columns).filter((column) => columns[column] === 'text')
    const bytes = ['0', ...texts.map((column) => `coalesce(octet_length(r.${column}), 0)`)].join(' + ')
    return `SELECT ${bytes} AS bytes FROM s JOIN ${name} r ON r.account_id = s.account`
  })
  const [counted] = await query<{ count: number, bytes: number }>(`
    WITH s AS (SELECT i.account FROM ${dialect.jsonRows('i', { account: 'bigint' })})
    SELECT count(*) AS count, coalesce(sum(x.bytes), 0) AS bytes FROM (
      SELECT u.bytes FROM (${rows.join(' UNION ALL ')}) AS u LIMIT ${MAX_STORE_ROWS + 1}) AS x`, [{ account }])
  return counted!.count > MAX_STORE_ROWS || counted!.bytes > MAX_STORE_BYTES
}

/**
 * Deletes the rows of a store that a snapshot does not hold, or all of them, after `exceedsLimit` has found that they
 * are few. The ids are walked in order, because PostgreSQL would rather read a whole table than the rows of an account
 * that it believes to be large.
 */
export async function deleteOtherRows (
  { dialect, execute }: Transaction, account: number, snapshot: number | null
): Promise<void> {
  for (const { name, id } of STORED_TABLES.toReversed()) {
    const { where, orderBy } = dialect.keyset([['r.account_id', '(SELECT i.account FROM i)']], `r.${id}`, '0', false)
    await execute(`
      WITH i AS (SELECT i.account, i.snapshot FROM ${dialect.jsonRows('i', { account: 'bigint', snapshot: 'bigint' })})
      DELETE FROM ${name} WHERE ${dialect.inSubquery(id, `
        SELECT r.${id} FROM ${name} r
        WHERE ${where} AND r.${id} NOT IN (
          SELECT x.row_id FROM i JOIN snapshot_rows x
            ON x.account_id = i.account AND x.snapshot_id = i.snapshot AND x.kind = '${name}')
        ORDER BY ${orderBy} LIMIT ${MAX_STORE_ROWS}`)}`, [{ account, snapshot }])
  }
}

/** Number of deliveries of one step: few enough that no write waits noticeably for it. */
const DELIVERIES_PER_STEP = 1_000

/**
 * Drops those of the next deliveries of an account that wait for messages which are gone. An account can have many more
 * deliveries than its store has records.
 *
 * @returns the id of the last of them; `undefined` after the last delivery
 */
export const dropLostDeliveries: Command<{ account: number, after: number }, number | undefined> = {
  name: 'dropLostDeliveries',
  run: async ({ dialect, query, execute }, inputs) => await inSequence(inputs, async (input) => {
    const { where, orderBy } = dialect.keyset(
      [['d.account_id', '(SELECT i.account FROM i)']], 'd.id', '(SELECT i.after FROM i)', false)
    const rows = await query<{ id: number, lost: boolean | number }>(`
      WITH i AS (SELECT i.account, i.after FROM ${dialect.jsonRows('i', { account: 'bigint', after: 'bigint' })})
      SELECT d.id, d.state = 'waiting' AND d.message_position IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.position = d.message_position) AS lost
      FROM deliveries d WHERE ${where} ORDER BY ${orderBy} LIMIT ${DELIVERIES_PER_STEP}`, [input])
    const lost = rows.filter(({ lost }) => Boolean(lost)).map(({ id }) => ({ id }))
    await execute(`
      DELETE FROM deliveries WHERE id IN (SELECT i.id FROM ${dialect.jsonRows('i', { id: 'bigint' })})
        AND state = 'waiting'`, lost)
    return { record: rows.length === DELIVERIES_PER_STEP ? rows.at(-1)!.id : undefined }
  })
}
