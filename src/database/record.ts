import type { Static, TObject } from '@sinclair/typebox'

/** Returns the record of a row: its fields that the schema names, without those that are null. */
export function recordOf<Schema extends TObject> ({ properties }: Schema, row: object): Static<Schema> {
  const fields = row as Record<string, unknown>
  const record: Record<string, unknown> = {}
  for (const name of Object.keys(properties)) if (fields[name] !== null) record[name] = fields[name]
  return record
}
