import type { Database, Statement } from 'better-sqlite3'
import { LRUCache } from 'lru-cache'

/** Maximum number of statements per connection: the service has about a hundred, and one for each length of a list. */
const MAX_STATEMENTS = 300

/** The service's own statements on one connection: prepared once, and run without Prisma's conversions. */
export class OwnStatements {
  readonly #prepare: (sql: string) => Statement
  readonly #kept = new LRUCache<string, Statement>({ max: MAX_STATEMENTS })

  constructor (client: Database) {
    this.#prepare = client.prepare.bind(client)
  }

  /** Returns the rows of a statement, none if it only writes. */
  all (sql: string, values: readonly unknown[]): object[] {
    const statement = this.#statement(sql)
    if (statement.reader) return statement.all(values) as object[]
    statement.run(values)
    return []
  }

  /** Returns the first row. */
  get (sql: string, values: readonly unknown[]): object | undefined {
    return this.#statement(sql).get(values) as object | undefined
  }

  #statement (sql: string): Statement {
    let statement = this.#kept.get(sql)
    if (statement === undefined) {
      // Ids and counts fit a double, because the contract keeps ids below 2^53.
      statement = this.#prepare(sql).safeIntegers(false)
      this.#kept.set(sql, statement)
    }
    return statement
  }
}
