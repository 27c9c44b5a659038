import { setImmediate as nextTurn } from 'node:timers/promises'
import { timeText } from '../database/account-clocks.ts'
import type { Command } from '../database/group-commit/command.ts'
import type { Transaction } from '../database/group-commit/transaction.ts'
import type { Table } from '../database/table.ts'
import type { CommandSuccess } from '../database/unit-of-work/success.ts'
import { all } from '../database/unit-of-work/write.ts'
import * as tables from '../generated/tables.ts'
import { messageId, messageSecret } from '../messages/commands.ts'
import { SnapshotLimitReached, SnapshotTooLarge } from './errors.ts'
import { memberOf, type ImportedStore } from './imported-store.ts'
import { SNAPSHOT_ETAG } from './queries.ts'
import type { Snapshot } from './schemas.ts'
import { countCopies, MAX_SNAPSHOTS, snapshotOf } from './snapshot-commands.ts'
import { makesTooLargeFile, MAX_STORE_ROWS } from './store-rows.ts'
import { countsOf, STORED_TABLES, type StoreRow } from './stored-tables.ts'

/** Number of rows of one statement. On SQLite, it blocks this thread. */
const ROWS_PER_STATEMENT = 500

/** A row of a snapshot: the id of the row, and its columns that are not NULL. */
type Copy = [id: number, columns: object]

/** The records of a file, and the account that gets them. */
export interface Import { account: number, store: ImportedStore }

/** Saves the records of a file as a snapshot. They get new ids. */
export const importSnapshot: Command<Import, Snapshot> = {
  name: 'importSnapshot',
  stores: true,
  runsAlone: true,
  // An account without snapshots has no row of theirs to lock, but it has API keys.
  needs: ({ account }) => ({ account, needs: [all(tables.apiKeys), all(tables.snapshots)] }),
  run: async (tx, input) => {
    const { length } = tx.rows(input.account).all(tables.snapshots)
    return length >= MAX_SNAPSHOTS ? new SnapshotLimitReached(MAX_SNAPSHOTS) : await saveStore(tx, input)
  }
}

/**
 * Saves the records of a file as a snapshot, however many the account has.
 *
 * @throws SnapshotTooLarge if the service could not take this snapshot itself; that ends the transaction
 */
export async function saveStore (tx: Transaction, { account, store }: Import): Promise<CommandSuccess<Snapshot>> {
  const rows = tx.rows(account)
  const [id] = await tx.allocateIds(tables.snapshots, 1)
  const counts = countsOf(({ name }) => store.get(name)!.rows.length)
  const size = { count: 0, bytes: 0 }
  for (const [kind, copies] of Object.entries(await copiesOf(tx, store))) {
    size.count += copies.length
    size.bytes += await saveCopies(tx, { account, snapshot: id!, kind }, copies)
  }
  if (makesTooLargeFile(size)) throw new SnapshotTooLarge('The file', MAX_STORE_ROWS)
  tx.storedBytes.add(account, (await countCopies(tx, account, id!)).bytes)
  const row = rows.insert(tables.snapshots, { id: id!, createdAt: rows.now, ...counts })
  return { record: snapshotOf(row), etag: SNAPSHOT_ETAG }
}

/** Returns the rows by table. Their versions begin anew, as their ids do. */
async function copiesOf (tx: Transaction, store: ImportedStore): Promise<Record<string, Copy[]>> {
  const copies: Record<string, Copy[]> = {}
  const newId = (name: string, id: unknown): number => copies[name]![store.get(name)!.positionOf(id)!]![0]
  for (const { name, table } of STORED_TABLES) {
    const { rows } = store.get(name)!
    const parent = table.columns[table.id]!.references
    const ids = parent === undefined
      ? await takeIds(tx, table, rows.length)
      : rows.map(({ row }) => newId(parent, memberOf(row, table.id)))
    copies[name] = rows.map(({ row }, i) => {
      const columns = columnsOf(table, row, newId)
      if (row.type === 'pet') columns['counted'] = store.get('inventory_items')!.positionOf(row.id) !== undefined
      if (row.type === 'message') columns['id'] = messageId(ids[i]!, messageSecret())
      return [ids[i]!, columns]
    })
  }
  return copies
}

/** Returns the columns of a record beside its id. */
function columnsOf (
  { id, columns }: Table, row: StoreRow, newId: (parent: string, id: unknown) => number
): Record<string, unknown> {
  const values: Record<string, unknown> = {}
  for (const [field, { name, type, references }] of Object.entries(columns)) {
    const value = memberOf(row, field)
    if (field === id || value === undefined) continue
    if (references !== undefined) values[name] = newId(references, value)
    else values[name] = type === 'time' ? timeText(Date.parse(value as string)) : value
  }
  return values
}

/** Allocates ids of which no row is inserted yet. */
async function takeIds (tx: Transaction, table: Table, count: number): Promise<number[]> {
  if (count === 0) return []
  const ids = await tx.allocateIds(table, count)
  await tx.run(tx.dialect.keepIds(table.name, ids.at(-1)!))
  return ids
}

/** @returns the bytes of the rows as JSON */
async function saveCopies (
  { dialect, execute }: Transaction, place: { account: number, snapshot: number, kind: string }, copies: Copy[]
): Promise<number> {
  let bytes = 0
  for (let i = 0; i < copies.length; i += ROWS_PER_STATEMENT) {
    // In the form of `rowAsJson`: once it is restored, a snapshot of the store has the same size.
    const rows = copies.slice(i, i + ROWS_PER_STATEMENT).map(([id, columns]) =>
      ({ ...place, id, data: JSON.stringify({ row: 1, ...columns, version: 1 }) }))
    await execute(`
      INSERT INTO snapshot_rows (account_id, snapshot_id, kind, row_id, data)
      SELECT i.account, i.snapshot, i.kind, i.id, i.data FROM ${dialect.jsonRows('i', {
        account: 'bigint', snapshot: 'bigint', kind: 'text', id: 'bigint', data: 'text'
      })}`, rows)
    bytes += rows.reduce((sum, { data }) => sum + Buffer.byteLength(data), 0)
    await nextTurn()
  }
  return bytes
}
