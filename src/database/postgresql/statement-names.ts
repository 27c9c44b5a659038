import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'

/** Maximum number of names that are kept, so that a hash of a text is seldom made again. */
const MAX_NAMES = 1_000

const names = new LRUCache<string, string>({ max: MAX_NAMES })

/**
 * Returns the name under which connections keep a statement of the service's own prepared: PostgreSQL then parses and
 * plans it once. Prisma Client's statements have no name, because their texts are too many: one for every length of a
 * list.
 *
 * A name is a hash of the text, so that two processes behind one pool of connections never mean different statements.
 */
export function nameOf (sql: string): string {
  let name = names.get(sql)
  if (name === undefined) {
    name = `petstore_${createHash('sha256').update(sql).digest('hex').slice(0, 24)}`
    names.set(sql, name)
  }
  return name
}
