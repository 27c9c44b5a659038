import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'

export interface Column { name: string, parse: (text: string) => unknown }

export interface PreparedStatement { name: string, columns: Column[] }

/**
 * Maximum number of prepared statements of a connection: each takes about 0.1 MB in the server. A client that sends
 * everything it can makes a connection prepare some 45 for reads, or 85 for writes.
 */
const MAX_STATEMENTS = 200

/**
 * Returns the name under which connections keep a statement of the service's own prepared: PostgreSQL then parses and
 * plans it once. Prisma Client's statements have no name, because their texts are too many: one for every length of a
 * list.
 *
 * A name is a hash of the text, so that two processes behind one pool of connections never mean different statements.
 */
export function nameOf (sql: string): string {
  return `petstore_${createHash('sha256').update(sql).digest('hex').slice(0, 24)}`
}

/** The statements that a connection has prepared, by their texts. The least recently used one makes room. */
export class PreparedStatements {
  #evicted: string[] = []
  readonly #statements = new LRUCache<string, PreparedStatement>({
    max: MAX_STATEMENTS,
    dispose: ({ name }, _sql, reason) => { if (reason === 'evict') this.#evicted.push(name) }
  })

  /** Returns a statement, or `undefined` if it is not prepared. */
  get (sql: string): PreparedStatement | undefined {
    return this.#statements.get(sql)
  }

  set (sql: string, columns: Column[]): void {
    this.#statements.set(sql, { name: nameOf(sql), columns })
  }

  clear (): void {
    this.#statements.clear()
  }

  /** Returns the names of the statements that made room since the last call, which the server still has. */
  takeEvicted (): string[] {
    const evicted = this.#evicted
    if (evicted.length > 0) this.#evicted = []
    return evicted
  }
}
