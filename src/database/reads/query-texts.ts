import type { Dialect } from '../dialect.ts'
import type { AnyQuery } from './query.ts'

/** A query for one input, whose members are the parameters. */
export interface SingleStatement {
  sql: string
  /** Returns the parameters for an input. */
  valuesOf: (input: object) => unknown[]
}

/** Builds the text of each query once for many inputs, and once for one. Keeps it as long as others keep the query. */
export class QueryTexts {
  readonly #dialect: Dialect
  readonly #texts = new WeakMap<AnyQuery, string>()
  readonly #singles = new WeakMap<AnyQuery, SingleStatement>()

  constructor (dialect: Dialect) {
    this.#dialect = dialect
  }

  /** Returns the text of a query whose only parameter is a JSON array of inputs. */
  textOf (query: AnyQuery): string {
    let text = this.#texts.get(query)
    if (text === undefined) {
      text = query.sql(this.#dialect)
      this.#texts.set(query, text)
    }
    return text
  }

  singleOf (query: AnyQuery): SingleStatement {
    let single = this.#singles.get(query)
    if (single === undefined) {
      single = singleStatement(query, this.#dialect)
      this.#singles.set(query, single)
    }
    return single
  }
}

function singleStatement (query: AnyQuery, dialect: Dialect): SingleStatement {
  let names: string[] = []
  const sql = query.sql({
    ...dialect,
    jsonRows: (alias, columns) => {
      names = Object.keys(columns).filter((name) => columns[name] !== 'ordinality')
      return dialect.row(alias, columns)
    }
  })
  return { sql, valuesOf: (input) => names.map((name) => toParameter((input as Record<string, unknown>)[name])) }
}

/** Converts a member of an input to a value that both databases take. */
function toParameter (value: unknown): unknown {
  switch (typeof value) {
    case 'undefined': return null
    case 'boolean': return value ? 1 : 0
    case 'object': return value === null ? null : JSON.stringify(value)
    default: return value
  }
}
