import type { Static, TObject } from '@sinclair/typebox'

/** Returns the record of a row: its fields that the schema names, without those that are null. */
export function recordOf<Schema extends TObject> ({ properties }: Schema, row: object): Static<Schema> {
  const fields = row as Record<string, unknown>
  const record: Record<string, unknown> = {}
  for (const name of Object.keys(properties)) if (fields[name] !== null) record[name] = fields[name]
  return record
}

/** Returns a row's version as a strong entity tag (RFC 9110 section 8.8.1). */
export function etagOf (version: number | bigint): string {
  return `"${version}"`
}

/**
 * Returns the version of a row after a change. It is above the floor that the row got when it was restored, so no two
 * states of a row ever have the same entity tag.
 */
export function nextVersion (version: number, floor: number | bigint): number {
  return Math.max(version, Number(floor)) + 1
}

/** Returns `nextVersion` as an SQL expression over two columns. */
export function nextVersionSql (version: string, floor: string): string {
  return `CASE WHEN ${floor} > ${version} THEN ${floor} ELSE ${version} END + 1`
}
