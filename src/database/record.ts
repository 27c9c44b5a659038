import type { Static, TObject, TSchema } from '@sinclair/typebox'

/**
 * Returns the record of a row: its fields that the schema names, without those that are null. A text of which the
 * schema makes an array or an object contains JSON.
 */
export function recordOf<Schema extends TObject> ({ properties }: Schema, row: object): Static<Schema> {
  const fields = row as Record<string, unknown>
  const record: Record<string, unknown> = {}
  for (const name in properties) {
    const value = fields[name]
    if (value === null) continue
    record[name] = typeof value === 'string' && isStructured(properties[name]!) ? JSON.parse(value) : value
  }
  return record
}

/** Tells whether a schema is that of an array or an object, which a column contains as JSON. No `ref` is. */
export function isStructured ({ type }: TSchema): boolean {
  return type === 'array' || type === 'object'
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
