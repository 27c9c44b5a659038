import type { Credential } from '../../src/accounts/api-key.ts'
import type { DatabaseName } from '../../src/database/dialect.ts'
import type { Scope } from './requests.ts'

/** The units of a pet: more than any load orders. */
const ENOUGH = 1_000_000_000

/** The pet with one unit, which an order of the comparison takes. */
export const LAST_UNIT = 3

/** The categories of each account. */
const CATEGORIES = 20

/** The settings of the servers on a store, if not the defaults. */
export const ENVIRONMENT: Partial<Record<Shape, Record<string, string>>> = {
  // Deliveries are queued and not sent: a receiver would use the machine that is measured. `WEBHOOKS` is for the other
  // servers, which look for webhooks only where there are any.
  webhook: { DELIVERY: 'false', WEBHOOKS: 'true' }
}

/** The small accounts of the shape `many`, and the pets of each. */
const SMALL_ACCOUNTS = 1_000
const SMALL_PETS = 20

/**
 * The rows of a store:
 *
 * - `usual`: one account; three in five of its pets are available, one is pending, one is sold.
 * - `contended`: the same, but all pets are available.
 * - `webhook`: the same as `usual`, and a webhook for `order.placed`.
 * - `many`: the same as `usual`, and 1,000 accounts with 20 pets each. Each pet has an order.
 */
export type Shape = 'usual' | 'contended' | 'webhook' | 'many'

export interface Seed { shape: Shape, pets: number, credentials: Credential[] }

/** Returns the number of accounts of a store. */
export function accountsOf (shape: Shape): number {
  return shape === 'many' ? 1 + SMALL_ACCOUNTS : 1
}

/** Returns the accounts of a store, the large one first. */
export function scopesOf ({ pets, credentials }: Seed): Scope[] {
  return credentials.map(({ apiKey: key }, i) => ({
    key,
    beforePets: i === 0 ? 0 : pets + (i - 1) * SMALL_PETS,
    pets: i === 0 ? pets : SMALL_PETS,
    beforeCategories: i * CATEGORIES
  }))
}

/** Returns statements that write the rows of a store. They are SQL, so that a million pets take seconds. */
export function seedStatements (database: DatabaseName, { shape, pets, credentials }: Seed): string[] {
  const sqlite = database === 'sqlite'
  const numbers = (count: number): string =>
    `(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count}) SELECT i FROM n) AS n`
  const now = sqlite ? `'${new Date().toISOString()}'` : 'now()'
  const type = sqlite ? '' : '::pet_status'
  const status = shape === 'contended'
    ? `'available'${type}`
    : `CASE i % 5 WHEN 4 THEN 'pending' WHEN 0 THEN 'sold' ELSE 'available' END${type}`
  const units = shape === 'contended'
    ? `${ENOUGH}`
    : `CASE WHEN i = ${LAST_UNIT} THEN 1 WHEN i % 5 = 0 THEN 0 ELSE ${ENOUGH} END`
  const accounts = credentials.length
  const all = pets + (accounts - 1) * SMALL_PETS
  const owner = `CASE WHEN i <= ${pets} THEN 1 ELSE (i - ${pets} - 1) / ${SMALL_PETS} + 2 END`
  const keys = credentials.map(({ prefix, hash }, i) => `(${i + 1}, ${i + 1}, '${prefix}', '${hash}', ${now})`)
  const sequences = [
    ['accounts', accounts], ['api_keys', accounts], ['categories', accounts * CATEGORIES], ['pets', all],
    ...(shape === 'many' ? [['orders', all]] : [])
  ]
  return [
    `INSERT INTO accounts (id, name, created_at) SELECT i, 'Bench ' || i, ${now} FROM ${numbers(accounts)}`,
    `INSERT INTO api_keys (id, account_id, prefix, hash, created_at) VALUES ${keys.join(', ')}`,
    `INSERT INTO categories (id, account_id, name)
      SELECT i, (i - 1) / ${CATEGORIES} + 1, 'Category ' || i FROM ${numbers(accounts * CATEGORIES)}`,
    `INSERT INTO pets (id, account_id, name, category_id, status)
      SELECT i, ${owner}, 'Rex ' || i, (${owner} - 1) * ${CATEGORIES} + i % ${CATEGORIES} + 1, ${status}
      FROM ${numbers(all)}`,
    `INSERT INTO inventory_items (pet_id, account_id, quantity) SELECT i, ${owner}, ${units} FROM ${numbers(all)}`,
    ...(shape === 'many'
      ? [`INSERT INTO orders (id, account_id, pet_id, quantity, complete)
          SELECT i, ${owner}, i, 1, i % 2 = 0 FROM ${numbers(all)}`]
      : []),
    ...(shape === 'webhook'
      ? [`INSERT INTO webhooks (account_id, url, events, secret, created_at)
          VALUES (1, 'https://receiver.example/', '["order.placed"]', 'whsec_bench', ${now})`]
      : []),
    ...(sqlite ? [] : sequences.map(([table, last]) => `SELECT setval('${table}_id_seq', ${last})`))
  ]
}
