import type { Database, Statement } from 'better-sqlite3'
import { LRUCache } from 'lru-cache'

/** Maximum number of statements per connection. Prisma uses a different text for every length of a list. */
const MAX_STATEMENTS = 200

/**
 * Makes the connection of Prisma's adapter prepare each statement only once. The adapter prepares a statement for every
 * call. That costs as much as running a small statement, and leaves an object that the garbage collector must close.
 */
export function cachePreparedStatements (client: Database): void {
  const prepare = client.prepare.bind(client) as (sql: string) => Statement
  const kept = new LRUCache<string, CachedStatement>({ max: MAX_STATEMENTS })

  client.prepare = ((sql: string) => {
    let statement = kept.get(sql)
    if (statement === undefined) {
      statement = wrap(prepare(sql))
      kept.set(sql, statement)
    }
    return statement
  }) as unknown as Database['prepare']
}

/** The part of a statement that the adapter uses. Its `bind` applies to one call, not to all later ones. */
interface CachedStatement {
  bind: (values: unknown[]) => BoundStatement
  run: () => unknown
}

interface BoundStatement {
  reader: boolean
  columns: () => unknown
  raw: () => { all: () => unknown }
  run: () => unknown
}

function wrap (statement: Statement): CachedStatement {
  const { reader } = statement
  const columns = reader ? statement.raw().columns() : []
  return {
    bind: (values) => ({
      reader,
      columns: () => columns,
      raw: () => ({ all: () => statement.all(values) }),
      run: () => statement.run(values)
    }),
    run: () => statement.run()
  }
}
