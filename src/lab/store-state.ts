import { createHash } from 'node:crypto'
import type { Read } from '../database/reads/query.ts'
import { recordsOf, type VersionedRecord } from './row-records.ts'
import { rowsOfStore } from './row-slices.ts'
import type { StoreState } from './schemas.ts'
import { countsOf, STORED_TABLES } from './stored-tables.ts'

/** Returns what identifies the state of a store. @throws StoreTooLarge */
export async function stateOf (read: Read, account: number): Promise<StoreState> {
  const hash = createHash('sha256')
  const contentHash = createHash('sha256')
  const positions = new Map(STORED_TABLES.map(({ name }) => [name, new Map<unknown, number>()]))
  for await (const record of recordsOf(rowsOfStore(read, account))) {
    hash.update(sorted({ ...record.row, version: record.version }))
    contentHash.update(sorted(withPositions(record, positions)))
  }
  const counts = countsOf(({ name }) => positions.get(name)!.size)
  return { hash: hash.digest('hex'), contentHash: contentHash.digest('hex'), counts }
}

/** Returns a record as a line of JSON whose members are sorted by name. */
function sorted (record: object): string {
  return `${JSON.stringify(record, Object.keys(record).sort())}\n`
}

/**
 * Returns a record with positions among the records of their type in place of ids, and without the times that the
 * service sets. Remembers its position. Parents must come before children.
 */
function withPositions (
  { row, table: { name, idMember, references, setByService } }: VersionedRecord,
  positions: ReadonlyMap<string, Map<unknown, number>>
): Record<string, unknown> {
  const content: Record<string, unknown> = { ...row }
  const own = positions.get(name)!
  own.set(content[idMember], own.size + 1)
  if ('id' in content) content['id'] = own.size
  for (const [member, parent] of references) {
    if (member in content) content[member] = positions.get(parent)!.get(content[member])
  }
  for (const member of setByService) delete content[member]
  return content
}
