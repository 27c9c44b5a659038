import { readFile } from 'node:fs/promises'
import type { Commit } from '../database/group-commit/committer.ts'
import { OperationalError } from '../operational-error.ts'
import { validateLines } from './file-rows.ts'
import { importSnapshot } from './import-command.ts'
import { relateRows } from './imported-store.ts'
import type { StoreCounts } from './schemas.ts'
import { deleteSnapshot, restoreSnapshot } from './snapshot-commands.ts'
import { parseLines } from './store-file.ts'
import { dropDeliveries } from './store-rows.ts'

/** Maximum size of a file in bytes. */
export const MAX_IMPORT_BYTES = 8_388_608

/** Reads a file of records. @throws OperationalError if it is missing or too large */
export async function readFileOfStore (path: string | URL): Promise<Buffer> {
  const content = await readFile(path).catch((error: Error) => { throw new OperationalError(error.message) })
  if (content.length <= MAX_IMPORT_BYTES) return content
  throw new OperationalError(`${String(path)} is larger than ${MAX_IMPORT_BYTES} bytes, the most that a store can have.`)
}

/** Replaces the records of an account by those of a file. */
export async function importStore (commit: Commit, account: number, file: Buffer): Promise<StoreCounts> {
  const { values } = await parseLines(file)
  const store = relateRows(await validateLines(values))
  const { record: { id: snapshotId, counts } } = await commit(importSnapshot, { account, store }, { account })
  const snapshot = { account, snapshotId, conditions: {} }
  await commit(restoreSnapshot, snapshot, { account })
  await dropDeliveries(commit, account)
  await commit(deleteSnapshot, snapshot, { account })
  return counts
}
