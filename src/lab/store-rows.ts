import type { Command } from '../database/group-commit/command.ts'
import type { Commit } from '../database/group-commit/committer.ts'
import type { Transaction } from '../database/group-commit/transaction.ts'
import { bytesSql } from '../database/unit-of-work/stored-bytes.ts'
import { rowAsJson, textBytes } from './stored-rows.ts'
import { STORED_TABLES, type StoredTable } from './stored-tables.ts'

/** Limit what one transaction copies or replaces, so that no other account waits for it: records, and their texts. */
export const MAX_STORE_ROWS = 10_000
export const MAX_STORE_BYTES = 8_388_608

/**
 * Maximum size of a store as JSON: of a file, and of a difference. With its head, a response must be smaller than what
 * a connection may leave unsent: 8,388,608 bytes.
 */
export const MAX_FILE_BYTES = 8_000_000

/** The limits in words, for errors. */
export const STORE_LIMIT = `The store has more than ${MAX_STORE_ROWS} records or 8 MB of text`

export interface StoreSize { count: number, bytes: number }

/** Counts the records of a store, and the bytes of each, in SQL. Looks at no more records than the limit. */
async function measure (
  { dialect, query }: Transaction, account: number, bytesOf: (table: StoredTable) => string
): Promise<StoreSize> {
  const rows = STORED_TABLES.map((table) =>
    `SELECT ${bytesOf(table)} AS bytes FROM s JOIN ${table.name} r ON r.account_id = s.account`)
  const [measured] = await query<{ count: number, bytes: number }>(`
    WITH s AS (SELECT i.account FROM ${dialect.jsonRows('i', { account: 'bigint' })})
    SELECT count(*) AS count, coalesce(sum(x.bytes), 0) AS bytes FROM (
      SELECT u.bytes FROM (${rows.join(' UNION ALL ')}) AS u LIMIT ${MAX_STORE_ROWS + 1}) AS x`, [{ account }])
  return { count: Number(measured!.count), bytes: Number(measured!.bytes) }
}

/** Tells whether a store is larger than one transaction may replace. */
export function isTooLarge ({ count, bytes }: StoreSize): boolean {
  return count > MAX_STORE_ROWS || bytes > MAX_STORE_BYTES
}

/** Changes a store that one transaction may replace, and counts by how much the stored bytes of its account change. */
export async function countingBytes<Result> (
  tx: Transaction, account: number, change: () => Promise<Result>
): Promise<Result> {
  const bytesOf = ({ table }: StoredTable): string => bytesSql(table, 'r')
  const before = await measure(tx, account, bytesOf)
  const result = await change()
  const after = await measure(tx, account, bytesOf)
  tx.storedBytes.add(account, after.bytes - before.bytes)
  return result
}

/** Returns the number of records of a store, and the bytes of their texts. */
export async function sizeOf (tx: Transaction, account: number): Promise<StoreSize> {
  return await measure(tx, account, textBytes)
}

/** The most by which a line of a file is longer than the columns of its row as JSON: ids, and the names of members. */
const LINE_OVERHEAD = 64

/** A control character takes 6 bytes in JSON. */
const MAX_ESCAPED_BYTES = 6

/** Columns without text take at most this in JSON. */
const MAX_OTHER_BYTES = 200

/** Tells whether a store is larger than one transaction may copy, or than a file may be that is to be imported. */
export async function exceedsFile (tx: Transaction, account: number): Promise<boolean> {
  const texts = await sizeOf(tx, account)
  if (isTooLarge(texts)) return true
  const most = texts.bytes * MAX_ESCAPED_BYTES + texts.count * (MAX_OTHER_BYTES + LINE_OVERHEAD)
  if (most <= MAX_FILE_BYTES) return false
  const bytesOf = ({ columns }: StoredTable): string => `octet_length(${rowAsJson(tx.dialect, columns)})`
  return makesTooLargeFile(await measure(tx, account, bytesOf))
}

/** Tells whether rows, with their bytes as JSON, make a larger file than a snapshot may have. */
export function makesTooLargeFile ({ count, bytes }: StoreSize): boolean {
  return bytes + count * LINE_OVERHEAD > MAX_FILE_BYTES
}

/**
 * Deletes the rows of a store that a snapshot does not hold, or all of them, after `isTooLarge` has found that they
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
  run: async ({ dialect, query, execute }, input) => {
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
  }
}

/** Drops the deliveries of messages that are gone, in small steps, so that other writes get their turn. */
export async function dropDeliveries (commit: Commit, account: number): Promise<void> {
  let after: number | undefined = 0
  while (after !== undefined) {
    after = (await commit(dropLostDeliveries, { account, after }, { account })).record
  }
}
