import type { Read } from '../database/reads/query.ts'
import { StoreTooLarge } from './errors.ts'
import { recordsOf, type VersionedRecord } from './row-records.ts'
import { rowsOfSnapshot, rowsOfStore } from './row-slices.ts'
import { MAX_FILE_BYTES } from './store-rows.ts'
import { STORED_TABLES } from './stored-tables.ts'

const ORDER = new Map(STORED_TABLES.map(({ name }, i) => [name, i]))

/** Returns the difference between a snapshot and the store now, as JSON. @throws StoreTooLarge */
export async function diffSince (read: Read, account: number, snapshot: number): Promise<string> {
  const created: string[] = []
  const changed: string[] = []
  const deleted: string[] = []
  let size = 0
  const add = (list: string[], text: string): void => {
    // With a comma.
    size += Buffer.byteLength(text) + 1
    if (size > MAX_FILE_BYTES) throw new StoreTooLarge('The difference has more than 8 MB')
    list.push(text)
  }
  const befores = recordsOf(rowsOfSnapshot(read, account, snapshot))
  const afters = recordsOf(rowsOfStore(read, account))
  let before = await next(befores)
  let after = await next(afters)
  while (before !== undefined || after !== undefined) {
    const order = compare(before, after)
    if (order === 0) {
      const [old, current] = [JSON.stringify(before!.row), JSON.stringify(after!.row)]
      if (old !== current) add(changed, `{"before":${old},"after":${current}}`)
    } else if (order < 0) {
      add(deleted, JSON.stringify(before!.row))
    } else {
      add(created, JSON.stringify(after!.row))
    }
    if (order <= 0) before = await next(befores)
    if (order >= 0) after = await next(afters)
  }
  return `{"created":[${created.join()}],"changed":[${changed.join()}],"deleted":[${deleted.join()}]}`
}

async function next (records: AsyncGenerator<VersionedRecord, void>): Promise<VersionedRecord | undefined> {
  return (await records.next()).value ?? undefined
}

/** Compares two records by table and id. A missing one comes last. */
function compare (a: VersionedRecord | undefined, b: VersionedRecord | undefined): number {
  if (a === undefined || b === undefined) return a === undefined ? 1 : -1
  return ORDER.get(a.table.name)! - ORDER.get(b.table.name)! || a.id - b.id
}
