import * as tables from '../generated/tables.ts'
import { ANIMALS } from '../pets/sample-data.ts'
import { createCategory } from '../categories/commands.ts'
import type { Command } from '../database/group-commit/command.ts'
import { runWithin } from '../database/unit-of-work/run-within.ts'
import { bytesSql, ROW_BYTES } from '../database/unit-of-work/stored-bytes.ts'
import { forUpdate } from '../database/unit-of-work/write.ts'
import { setStock, setStatus, type Stock } from '../pets/rules.ts'

/** Names of pets, each with the index of its category. */
const NAMES = ANIMALS.flatMap(({ pets }, category) => pets.map(([name]) => ({ name, category })))

const UNCOUNTED: Stock = { status: 'available', quantity: undefined, open: 0 }

/** The stock of the seeded pets, by the rules of the store: never counted, sold out, few or many units, and on hold. */
const STOCKS: Stock[] = [
  UNCOUNTED,
  ...[0, 1, 2, 3, 8, 12, 40, 120].map((units) => setStock(UNCOUNTED, units)),
  setStatus(setStock(UNCOUNTED, 5), 'pending')!
]

/** Returns the ids of the categories that `seedPets` needs: existing ones of the account, and new ones. */
export const seedCategories: Command<{ account: number }, number[]> = {
  name: 'seedCategories',
  async run (tx, { account }) {
    const existing = await tx.query<{ id: number }>(`
      SELECT c.id FROM ${tx.dialect.jsonRows('i', { account: 'bigint' })} JOIN categories c ON c.account_id = i.account
      ORDER BY c.id LIMIT ${ANIMALS.length}`, [{ account }])
    const missing = ANIMALS.slice(existing.length).map(({ name, description }) => ({ category: { name, description } }))
    const created = await runWithin(tx, account, createCategory, missing)
    return { record: [...existing.map(({ id }) => id), ...created.map(({ record }) => record.id)] }
  }
}

/**
 * Adds many pets with their stock to a store. Writes no events, because a million of them have no use in a feed. The
 * database computes the rows from their ids, because sending rows costs more than writing them.
 */
export const seedPets: Command<{ account: number, categories: number[], pets: number }, undefined> = {
  name: 'seedPets',
  needs: ({ account, categories }) => ({ account, needs: categories.map((id) => forUpdate(tables.categories, id)) }),
  async run ({ dialect, query, execute, allocateIds, storedBytes }, { account, categories, pets }) {
    const rows = (await allocateIds(tables.pets, pets)).map((id) => ({ id, account }))
    const n = dialect.jsonRows('n', { id: 'bigint', account: 'bigint' })
    await execute(`INSERT INTO pets (id, account_id, category_id, name, status)
      SELECT n.id, n.account, ${category(categories)}, ${NAME} || ' ' || n.id, ${dialect.toEnum(STATUS, 'pet_status')}
      FROM ${n}`, rows)
    await execute(`INSERT INTO inventory_items (pet_id, account_id, quantity)
      SELECT n.id, n.account, ${QUANTITY} FROM ${n} WHERE ${QUANTITY} IS NOT NULL`, rows)
    const [stored] = await query<{ bytes: number }>(`
      SELECT sum(${bytesSql(tables.pets, 'p')} + CASE WHEN ${QUANTITY} IS NULL THEN 0 ELSE ${ROW_BYTES} END) AS bytes
      FROM ${n} CROSS JOIN pets p WHERE p.id = n.id`, rows)
    storedBytes.add(account, stored!.bytes)
    return { record: undefined }
  }
}

const NTH_NAME = `n.id % ${NAMES.length}`
const NTH_STOCK = `n.id / ${NAMES.length} % ${STOCKS.length}`

/** Returns an SQL expression for the value at an index of a list. It escapes nothing: pass no values of clients. */
function choose (index: string, values: string[]): string {
  return `CASE ${index} ${values.map((value, i) => `WHEN ${i} THEN ${value}`).join(' ')} END`
}

const NAME = choose(NTH_NAME, NAMES.map(({ name }) => `'${name}'`))
const STATUS = choose(NTH_STOCK, STOCKS.map(({ status }) => `'${status}'`))
const QUANTITY = choose(NTH_STOCK, STOCKS.map(({ quantity }) => quantity === undefined ? 'NULL' : String(quantity)))
const category = (ids: number[]): string => choose(NTH_NAME, NAMES.map(({ category }) => String(ids[category])))
