import { createHash } from 'node:crypto'

export interface Column { name: string, parse: (text: string) => unknown }

export interface PreparedStatement { name: string, columns: Column[] }

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

/**
 * The statements that a connection has prepared, by their texts. Each takes about 0.1 MB in the server. A client that
 * sends everything it can makes a connection prepare some 80 for reads, or 200 for writes.
 */
export type PreparedStatements = Map<string, PreparedStatement>
