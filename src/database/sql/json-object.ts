import type { Dialect } from '../dialect.ts'

/** A record as the database returns it: its JSON text and its entity tag. */
export interface SerializedRecord {
  record: string
  etag: string
}

/** The conversion of one column to a JSON member. */
export interface Member {
  column: string
  /** Returns an SQL expression for the member's value in JSON. */
  value: (dialect: Dialect) => string
  /** The object omits the member if the column is NULL: responses contain no `null`. */
  isOptional?: boolean
}

export const integer = (column: string): Member => ({ column, value: () => column })
/** Defines a member from a column that contains JSON text. */
export const json = (column: string): Member => ({ column, value: () => column })
export const text = (column: string): Member => ({ column, value: (dialect) => dialect.quote(column) })
export const enumText = (column: string): Member =>
  ({ column, value: () => `'"' || CAST(${column} AS text) || '"'` })
export const boolean = (column: string): Member =>
  ({ column, value: () => `CASE WHEN ${column} THEN 'true' ELSE 'false' END` })
export const time = (column: string): Member =>
  ({ column, value: (dialect) => `'"' || ${dialect.time(column)} || '"'` })
export const optional = (member: Member): Member => ({ ...member, isOptional: true })

/**
 * Returns an SQL expression for a record's JSON text, byte for byte as JSON.stringify writes it. The service only sends
 * the text. Members keep the given order; the first must not be optional.
 */
export function jsonObject (dialect: Dialect, members: Record<string, Member>): string {
  const parts = Object.entries(members).map(([name, { column, value, isOptional }], i) => {
    const member = `'${i === 0 ? '{' : ','}"${name}":' || ${value(dialect)}`
    return isOptional ? `CASE WHEN ${column} IS NULL THEN '' ELSE ${member} END` : member
  })
  return `${parts.join(' || ')} || '}'`
}
