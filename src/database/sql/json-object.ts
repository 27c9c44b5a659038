import type { Dialect } from '../dialect.ts'

/** A record as the database returns it: its JSON text and its entity tag. */
export interface SerializedRecord {
  record: string
  etag: string
}

/** The conversion of one column to a JSON member. */
export interface Member {
  kind: 'integer' | 'text' | 'enum' | 'boolean' | 'time' | 'json'
  sql: string
  /** The object omits the member if the column is NULL: responses contain no `null`. */
  optional: boolean
}

const member = (kind: Member['kind'], sql: string): Member => ({ kind, sql, optional: false })

export const integer = (sql: string): Member => member('integer', sql)
export const text = (sql: string): Member => member('text', sql)
export const enumText = (sql: string): Member => member('enum', sql)
export const boolean = (sql: string): Member => member('boolean', sql)
export const time = (sql: string): Member => member('time', sql)
/** Defines a member from a column that contains JSON text. */
export const json = (sql: string): Member => member('json', sql)
export const optional = (inner: Member): Member => ({ ...inner, optional: true })

/**
 * Returns an SQL expression for a record's JSON text, byte for byte as JSON.stringify writes it. The service only sends
 * the text. Members keep the given order; the first must not be optional.
 */
export function jsonObject (dialect: Dialect, members: Record<string, Member>): string {
  const parts = Object.entries(members).map(([name, { kind, sql, optional }], i) => {
    const value = `'${i === 0 ? '{' : ','}"${name}":' || ${jsonValue(dialect, kind, sql)}`
    return optional ? `CASE WHEN ${sql} IS NULL THEN '' ELSE ${value} END` : value
  })
  return `${parts.join(' || ')} || '}'`
}

function jsonValue (dialect: Dialect, kind: Member['kind'], sql: string): string {
  switch (kind) {
    case 'integer':
    case 'json': return sql
    case 'text': return dialect.quote(sql)
    case 'enum': return `'"' || ${dialect.fromEnum(sql)} || '"'`
    case 'boolean': return `CASE WHEN ${sql} THEN 'true' ELSE 'false' END`
    case 'time': return `'"' || ${dialect.time(sql)} || '"'`
  }
}
