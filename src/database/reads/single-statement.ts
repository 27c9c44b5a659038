import type { Dialect } from '../dialect.ts'
import type { AnyQuery } from './query.ts'

/** A query for one input, whose members are the parameters: SQLite takes less time for them than for a JSON text. */
export interface SingleStatement {
  sql: string
  /** Returns the parameters for an input. */
  valuesOf: (input: object) => unknown[]
}

export function singleStatement (query: AnyQuery, dialect: Dialect): SingleStatement {
  let names: string[] = []
  const sql = query.sql({
    ...dialect,
    jsonRows: (alias, columns) => {
      names = Object.keys(columns).filter((name) => columns[name] !== 'ordinality')
      const members = Object.entries(columns).map(([name, type]) => `${type === 'ordinality' ? '1' : '?'} AS "${name}"`)
      return `(SELECT ${members.join(', ')}) AS ${alias}`
    }
  })
  return { sql, valuesOf: (input) => names.map((name) => toParameter((input as Record<string, unknown>)[name])) }
}

/** Converts a member of an input to a value that SQLite takes. */
function toParameter (value: unknown): unknown {
  switch (typeof value) {
    case 'undefined': return null
    case 'boolean': return value ? 1 : 0
    case 'object': return value === null ? null : JSON.stringify(value)
    default: return value
  }
}
