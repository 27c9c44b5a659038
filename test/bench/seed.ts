import type { DatabaseName } from '../../src/database/dialect.ts'

/** The units of a pet: more than any load orders. */
const ENOUGH = 1_000_000_000

/** The pet with one unit, which an order of the comparison takes. */
export const LAST_UNIT = 3

interface Seed { pets: number, prefix: string, hash: string }

/**
 * Writes one account with a key, 20 categories, and pets: three in five available, one pending, one sold.
 * Uses SQL, so that a million pets take seconds.
 */
export function seedStatements (database: DatabaseName, { pets, prefix, hash }: Seed): string[] {
  const sqlite = database === 'sqlite'
  const numbers = (count: number): string =>
    `(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count}) SELECT i FROM n) AS n`
  const now = sqlite ? `'${new Date().toISOString()}'` : 'now()'
  const status = `CASE i % 5 WHEN 4 THEN 'pending' WHEN 0 THEN 'sold' ELSE 'available' END${sqlite ? '' : '::pet_status'}`
  const sequences = [['accounts', 'id', 1], ['api_keys', 'id', 1], ['categories', 'id', 20], ['pets', 'id', pets]]
  return [
    `INSERT INTO accounts (id, name, created_at) VALUES (1, 'Bench', ${now})`,
    `INSERT INTO api_keys (id, account_id, prefix, hash, created_at) VALUES (1, 1, '${prefix}', '${hash}', ${now})`,
    `INSERT INTO categories (id, account_id, name) SELECT i, 1, 'Category ' || i FROM ${numbers(20)}`,
    `INSERT INTO pets (id, account_id, name, category_id, status) SELECT i, 1, 'Rex ' || i, i % 20 + 1, ${status} FROM ${numbers(pets)}`,
    `INSERT INTO inventory_items (pet_id, account_id, quantity)
      SELECT i, 1, CASE WHEN i = ${LAST_UNIT} THEN 1 WHEN i % 5 = 0 THEN 0 ELSE ${ENOUGH} END FROM ${numbers(pets)}`,
    ...(sqlite
      ? []
      : [
          ...sequences.map(([table, column, last]) => `SELECT setval('${table}_${column}_seq', ${last})`),
          'VACUUM ANALYZE'
        ])
  ]
}
