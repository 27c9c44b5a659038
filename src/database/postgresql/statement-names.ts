import { createHash } from 'node:crypto'

const names = new Map<string, string>()

/** Maximum number of prepared statements: each costs memory in every connection. The service has about a hundred. */
const MAX_NAMES = 500

/**
 * Returns the name under which connections keep a statement of the service's own prepared: PostgreSQL then parses and
 * plans it once. Prisma Client's statements have no name, because their texts are too many: one for every length of a
 * list.
 *
 * A name is a hash of the text, so that two processes behind one pool of connections never mean different statements.
 */
export function nameOf (sql: string): string {
  let name = names.get(sql)
  if (name === undefined && names.size < MAX_NAMES) {
    name = `petstore_${createHash('sha256').update(sql).digest('hex').slice(0, 24)}`
    names.set(sql, name)
  }
  return name ?? ''
}
