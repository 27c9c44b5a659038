import { readFile } from 'node:fs/promises'
import { createCredential, type Credential } from '../accounts/api-key.ts'
import { createAccount } from '../accounts/commands.ts'
import type { AccountWithKey, NewAccount } from '../accounts/schemas.ts'
import type { Command } from '../database/group-commit/command.ts'
import type { Commit } from '../database/group-commit/committer.ts'
import type { Transaction } from '../database/group-commit/transaction.ts'
import { runWithin } from '../database/unit-of-work/run-within.ts'
import type { CommandSuccess } from '../database/unit-of-work/success.ts'
import { InvalidJson } from '../errors.ts'
import { OperationalError } from '../operational-error.ts'
import { validateLines } from './file-rows.ts'
import { saveStore, type Import } from './import-command.ts'
import { relateRows, type ImportedStore } from './imported-store.ts'
import { deleteSnapshot, restoreSnapshot } from './snapshot-commands.ts'
import { parseLines } from './store-file.ts'
import { dropDeliveries } from './store-rows.ts'
import type { StoreCounts } from './stored-tables.ts'

/** Maximum size of a file in bytes. */
export const MAX_IMPORT_BYTES = 8_388_608

/**
 * Reads a file of records.
 *
 * @throws OperationalError if it is missing, too large or no JSON; ValidationFailed or SnapshotTooLarge
 */
export async function readStoreFile (path: string | URL): Promise<ImportedStore> {
  const content = await readFile(path).catch((error: Error) => { throw new OperationalError(error.message) })
  if (content.length > MAX_IMPORT_BYTES) {
    const limit = `${MAX_IMPORT_BYTES} bytes, the most that a store can have.`
    throw new OperationalError(`${String(path)} is larger than ${limit}`)
  }
  const { values } = await parseLines(content).catch((error: Error) => {
    if (!(error instanceof InvalidJson)) throw error
    throw new OperationalError(error.message.replace('The request body', String(path)))
  })
  return relateRows(await validateLines(values))
}

/** Replaces the records of an account by those of a file, all or none. */
export async function importStore (commit: Commit, account: number, store: ImportedStore): Promise<StoreCounts> {
  const { record } = await commit(replaceStore, { account, store }, { account })
  await dropDeliveries(commit, account)
  return record
}

/** Opens an account with the records of a file, or none. */
export async function openImportedStore (
  commit: Commit, name: string, store: ImportedStore
): Promise<{ opened: AccountWithKey, counts: StoreCounts }> {
  const input = { account: { name }, credential: createCredential(), store }
  return (await commit(openStore, input, { account: null })).record
}

const replaceStore: Command<Import, StoreCounts> = {
  name: 'replaceStore',
  stores: true,
  runsAlone: true,
  locksAccount: true,
  run: replaceRecords
}

interface NewStore { account: NewAccount, credential: Credential, store: ImportedStore }

const openStore: Command<NewStore, { opened: AccountWithKey, counts: StoreCounts }> = {
  name: 'openImportedStore',
  runsAlone: true,
  run: async (tx, { store, ...input }) => {
    const [success] = await runWithin(tx, null, createAccount, [input])
    const opened = success!.record
    const { id: account } = opened
    const { record: counts, events = [], changes = {} } = await replaceRecords(tx, { account, store })
    return { record: { opened, counts }, events: events.map((event) => ({ ...event, account })), changes }
  }
}

/** Restores the records from a snapshot, which no other transaction sees. */
async function replaceRecords (tx: Transaction, input: Import): Promise<CommandSuccess<StoreCounts>> {
  const { account } = input
  const [saved] = await runWithin(tx, account, { name: 'saveStore', run: saveStore }, [input])
  const { id: snapshotId, counts } = saved!.record
  const snapshot = { account, snapshotId, conditions: {} }
  const [restored] = await runWithin(tx, account, restoreSnapshot, [snapshot])
  const { events = [], changes = {} } = restored!
  await runWithin(tx, account, deleteSnapshot, [snapshot])
  return { record: counts, events, changes }
}
