import { LRUCache } from 'lru-cache'

export interface Column { name: string, parse: (text: string) => unknown }

/**
 * Maximum number of prepared statements of a connection: each takes about 0.1 MB in the server. A client that sends
 * everything it can makes a connection prepare about 120, for reads as for writes.
 */
const MAX_STATEMENTS = 200

/** The statements that a connection has prepared, by their names. The least recently used one makes room. */
export class PreparedStatements {
  #evicted: string[] = []
  readonly #columns = new LRUCache<string, Column[]>({
    max: MAX_STATEMENTS,
    dispose: (_columns, name, reason) => { if (reason === 'evict') this.#evicted.push(name) }
  })

  /** Returns the columns of a statement, or `undefined` if it is not prepared. */
  get (name: string): Column[] | undefined {
    return this.#columns.get(name)
  }

  set (name: string, columns: Column[]): void {
    this.#columns.set(name, columns)
  }

  clear (): void {
    this.#columns.clear()
  }

  /** Returns the names of the statements that made room since the last call, which the server still has. */
  takeEvicted (): string[] {
    const evicted = this.#evicted
    if (evicted.length > 0) this.#evicted = []
    return evicted
  }
}
