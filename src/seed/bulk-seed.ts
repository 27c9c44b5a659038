import { ANIMALS } from './sample-data.ts'
import { createCategory } from '../categories/commands.ts'
import { categoryTable } from '../categories/queries.ts'
import type { Command } from '../database/group-commit/command.ts'
import type { Dialect } from '../database/dialect.ts'
import { setStock, setStatus, type Stock } from '../pets/rules.ts'
import { petTable } from '../pets/queries.ts'

/** Names of pets, and to which of the categories each belongs. */
const NAMES = ANIMALS.flatMap(({ pets }, category) => pets.map(([name]) => ({ name, category })))

const UNCOUNTED: Stock = { status: 'available', quantity: undefined, open: 0 }

/** What stands on the shelves, by the rules of the store: never counted, sold out, a few units or many, and one on hold. */
const SHELVES: Stock[] = [
  UNCOUNTED,
  ...[0, 1, 2, 3, 8, 12, 40, 120].map((units) => setStock(UNCOUNTED, units)),
  setStatus(setStock(UNCOUNTED, 5), 'pending')!
]

/** The categories that `seedPets` fills, as many as it needs: those that the account has, and new ones. */
export const seedCategories: Command<{ account: number }, number[]> = {
  name: 'seedCategories',
  async run (tx, inputs) {
    const outcomes = []
    for (const { account } of inputs) {
      const had = await (await tx.prisma()).category.findMany({ where: { accountId: account }, select: { id: true }, orderBy: { id: 'asc' }, take: ANIMALS.length })
      const lacking = ANIMALS.slice(had.length).map(({ name, description }) => ({ account, category: { name, description } }))
      const created = lacking.length === 0 ? [] : await createCategory.run(tx, lacking)
      const ids = created.map((outcome) => 'record' in outcome ? outcome.record.id : 0)
      outcomes.push({ record: [...had.map(({ id }) => Number(id)), ...ids] })
    }
    return outcomes
  }
}

/**
 * Puts many pets into a store, with their stock. No events: a million of them would tell a feed nothing.
 * The rows are made in the database, from their ids alone, because sending them costs more than writing them.
 */
export const seedPets: Command<{ account: number, categories: number[], pets: number }, undefined> = {
  name: 'seedPets',
  locks: ({ categories }) => [{ table: categoryTable, ids: categories, mode: 'key share' }],
  async run ({ dialect, execute, allocateIdRanges }, inputs) {
    for (const { account, categories, pets } of inputs) {
      const ranges = (await allocateIdRanges(petTable, pets)).map((range) => ({ account, ...range }))
      await execute(`INSERT INTO pets (id, account_id, category_id, name, status) ${rowsFrom(dialect)}
        SELECT n.id, n.account, ${category(categories)}, ${NAME} || ' ' || n.id, ${dialect.toEnum(STATUS, 'pet_status')} FROM n`, ranges)
      await execute(`INSERT INTO inventory_items (pet_id, account_id, quantity) ${rowsFrom(dialect)}
        SELECT n.id, n.account, ${QUANTITY} FROM n WHERE ${QUANTITY} IS NOT NULL`, ranges)
    }
    return inputs.map(() => ({ record: undefined }))
  }
}

/** A row `n` for each id of the ranges. */
function rowsFrom (dialect: Dialect): string {
  return `WITH RECURSIVE n(id, last, account) AS (
    SELECT i.first, i.last, i.account FROM ${dialect.jsonRows('i', { first: 'bigint', last: 'bigint', account: 'bigint' })}
    UNION ALL SELECT n.id + 1, n.last, n.account FROM n WHERE n.id < n.last)`
}

const NTH_NAME = `n.id % ${NAMES.length}`
const NTH_SHELF = `n.id / ${NAMES.length} % ${SHELVES.length}`

/** An SQL expression for the value at a place in a list, of texts or numbers of our own. */
function choose (place: string, values: string[]): string {
  return `CASE ${place} ${values.map((value, i) => `WHEN ${i} THEN ${value}`).join(' ')} END`
}

const NAME = choose(NTH_NAME, NAMES.map(({ name }) => `'${name}'`))
const STATUS = choose(NTH_SHELF, SHELVES.map(({ status }) => `'${status}'`))
const QUANTITY = choose(NTH_SHELF, SHELVES.map(({ quantity }) => quantity === undefined ? 'NULL' : String(quantity)))
const category = (ids: number[]): string => choose(NTH_NAME, NAMES.map(({ category }) => String(ids[category])))
