import type { FastifyError } from 'fastify'
import type { Command } from '../database/group-commit/command.ts'
import type { Transaction } from '../database/group-commit/transaction.ts'
import { recordOf } from '../database/record.ts'
import type { AccountNeeds } from '../database/unit-of-work/load.ts'
import { bytesSql } from '../database/unit-of-work/stored-bytes.ts'
import { all, forUpdate } from '../database/unit-of-work/write.ts'
import { snapshotRows, snapshots, type SnapshotRow } from '../generated/tables.ts'
import { checkPreconditions, type Conditions } from '../http/conditional-requests.ts'
import { SnapshotLimitReached, SnapshotNotFound, SnapshotTooLarge, StoreTooLarge } from './errors.ts'
import { SNAPSHOT_ETAG } from './queries.ts'
import { settleRestoredMessages } from './restored-messages.ts'
import { versionFloor } from './rules.ts'
import { SnapshotSchema, storeEvents, type NewSnapshot, type Snapshot } from './schemas.ts'
import { countRestore } from './state-commands.ts'
import {
  countingBytes, deleteOtherRows, exceedsFile, isTooLarge, MAX_STORE_ROWS, sizeOf, STORE_LIMIT
} from './store-rows.ts'
import { copyRows, restoreRows } from './stored-rows.ts'
import { countsOf, STORED_TABLES, type StoreCounts } from './stored-tables.ts'

/** Maximum number of snapshots of an account. */
export const MAX_SNAPSHOTS = 20

export const createSnapshot: Command<{ account: number, snapshot: NewSnapshot }, Snapshot> = {
  name: 'createSnapshot',
  stores: true,
  runsAlone: true,
  // Otherwise the store could grow between the look at its size and the copy.
  locksAccount: true,
  needs: ({ account }) => ({ account, needs: [all(snapshots)] }),
  run: async (tx, { account, snapshot }) => {
    const rows = tx.rows(account)
    if (rows.all(snapshots).length >= MAX_SNAPSHOTS) return new SnapshotLimitReached(MAX_SNAPSHOTS)
    if (await exceedsFile(tx, account)) return new SnapshotTooLarge('The store', MAX_STORE_ROWS)
    const [id] = await tx.allocateIds(snapshots, 1)
    await tx.execute(copyRows(tx.dialect), [{ account, snapshot: id! }])
    const { counts, bytes } = await countCopies(tx, account, id!)
    tx.storedBytes.add(account, bytes)
    const row = rows.insert(snapshots, { ...snapshot, id: id!, createdAt: rows.now, ...counts })
    return { record: snapshotOf(row), etag: SNAPSHOT_ETAG }
  }
}

/** Returns the record of a row. */
export function snapshotOf (row: Readonly<SnapshotRow>): Snapshot {
  return recordOf(SnapshotSchema, { ...row, counts: countsOf(({ counted }) => row[counted]) })
}

/** Returns the number of the rows of a snapshot, and how much they count for the stored bytes of its account. */
export async function countCopies (
  { dialect, query }: Transaction, account: number, snapshot: number
): Promise<{ counts: StoreCounts, bytes: number }> {
  const rows = await query<{ kind: string, count: number, bytes: number }>(`
    SELECT x.kind, count(*) AS count, CAST(sum(${bytesSql(snapshotRows, 'x')}) AS bigint) AS bytes
    FROM ${dialect.jsonRows('i', { account: 'bigint', snapshot: 'bigint' })}
    JOIN snapshot_rows x ON x.account_id = i.account AND x.snapshot_id = i.snapshot
    GROUP BY x.kind`, [{ account, snapshot }])
  const byTable = new Map(rows.map(({ kind, count }) => [kind, count]))
  const counts = countsOf(({ name }) => byTable.get(name) ?? 0)
  return { counts, bytes: rows.reduce((sum, { bytes }) => sum + bytes, 0) }
}

async function deleteCopies ({ dialect, execute }: Transaction, account: number, snapshot: number): Promise<void> {
  await execute(`
    DELETE FROM snapshot_rows WHERE (account_id, snapshot_id) IN (
      SELECT i.account, i.snapshot FROM ${dialect.jsonRows('i', { account: 'bigint', snapshot: 'bigint' })})`,
  [{ account, snapshot }])
}

interface SnapshotRef { account: number, snapshotId: number, conditions: Conditions }

const needs = ({ account, snapshotId }: SnapshotRef): AccountNeeds =>
  ({ account, needs: [forUpdate(snapshots, snapshotId)] })

function findSnapshot (
  tx: Transaction, { account, snapshotId, conditions }: SnapshotRef
): Readonly<SnapshotRow> | FastifyError {
  const row = tx.rows(account).get(snapshots, snapshotId)
  return row === undefined ? new SnapshotNotFound() : checkPreconditions(conditions, SNAPSHOT_ETAG) ?? row
}

export const deleteSnapshot: Command<SnapshotRef, undefined> = {
  name: 'deleteSnapshot',
  runsAlone: true,
  needs,
  run: async (tx, input) => {
    const { account, snapshotId } = input
    const row = findSnapshot(tx, input)
    if (row instanceof Error) return row
    tx.storedBytes.add(account, -(await countCopies(tx, account, snapshotId)).bytes)
    await deleteCopies(tx, account, snapshotId)
    tx.rows(account).delete(snapshots, row)
    return { record: undefined }
  }
}

/**
 * Makes a store what it was. The account is locked, so each of its writes is committed before, or runs after. Rows that
 * exist are updated in place, so that a delivery worker that waits for one goes on with the restored row. Rows keep
 * their versions, and with them their entity tags; the next change of a row takes a version above every one that the
 * row ever had.
 */
export const restoreSnapshot: Command<SnapshotRef, Snapshot> = {
  name: 'restoreSnapshot',
  stores: true,
  runsAlone: true,
  locksAccount: true,
  needs,
  run: async (tx, input) => {
    const { account, snapshotId: snapshot } = input
    const row = findSnapshot(tx, input)
    if (row instanceof Error) return row
    const record = snapshotOf(row)
    if (isTooLarge(await sizeOf(tx, account))) return new StoreTooLarge(STORE_LIMIT)
    const { dialect, execute } = tx
    const floor = versionFloor(await countRestore(tx, account))
    const inputs = [{ account, snapshot, floor }]
    await countingBytes(tx, account, async () => {
      for (const table of STORED_TABLES) await execute(restoreRows(dialect, table), inputs)
      await deleteOtherRows(tx, account, snapshot)
    })
    const replaced = storeEvents.replaced({ reason: 'restored', snapshot: record })
    const events = [replaced, ...await settleRestoredMessages(tx, account)]
    // A worker settles the messages that are queued again and have no deliveries.
    return { record, etag: SNAPSHOT_ETAG, events, changes: { deliveries: [] } }
  }
}
