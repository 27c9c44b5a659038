import type { SqlDriverAdapter } from '@prisma/driver-adapter-utils'
import type { Database, Statement } from 'better-sqlite3'
import { LRUCache } from 'lru-cache'

/** Statements kept by a connection. Ours are fewer; Prisma's own have a text for every length of a list. */
const STATEMENTS = 200

/**
 * Lets an adapter's connection prepare each statement once. The adapter prepares for every call, which
 * costs as much as running a small statement, and leaves an object for the garbage collector to close.
 */
export function cachePreparedStatements (adapter: SqlDriverAdapter): void {
  const { client } = adapter as unknown as { client: Database }
  const prepare = client.prepare.bind(client) as (sql: string) => Statement
  const kept = new LRUCache<string, CachedStatement>({ max: STATEMENTS })

  client.prepare = ((sql: string) => {
    let statement = kept.get(sql)
    if (statement === undefined) {
      statement = wrap(prepare(sql))
      kept.set(sql, statement)
    }
    return statement
  }) as unknown as Database['prepare']
}

/** As much of a statement as the adapter asks for. Its `bind` binds for one call, not for ever. */
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
