import { etagOf, checkPreconditions, type Conditions } from '../http/conditional-requests.ts'
import type { Command, CommandResult } from '../database/group-commit/command.ts'
import type { Dialect } from '../database/dialect.ts'
import type { Table } from '../database/sql/bulk-insert.ts'
import { integer, jsonObject, optional, text, type SerializedRecord } from '../database/sql/json-object.ts'
import { pageQuery, type ListDefinition, type Page, type PageRequest } from '../database/sql/keyset-pagination.ts'
import type { Query, Read } from '../database/read-batching.ts'
import { distinct, type Transaction } from '../database/group-commit/transaction.ts'
import { CategoryInUse, CategoryNotFound } from '../errors.ts'
import type { Category, CategoryUpdate, NewCategory } from './schemas.ts'

const record = (dialect: Dialect): string => jsonObject(dialect, {
  id: integer('c.id'),
  name: text('c.name'),
  description: optional(text('c.description'))
})

const categoryById: Query<{ account: number, id: number }, { version: bigint, record: string }> = {
  sql: (dialect) => `
    SELECT i.ord, c.version, ${record(dialect)} AS record
    FROM ${dialect.jsonRows('i', { ord: 'ordinality', account: 'bigint', id: 'bigint' })}
    JOIN categories c ON c.id = i.id AND c.account_id = i.account`
}

export const categories: ListDefinition = {
  name: 'categories',
  from: 'categories c',
  record,
  filters: {},
  indexes: [{ name: 'categories_account_id_id_idx', columns: ['c.account_id'], position: 'c.id' }]
}

export async function findCategory (read: Read, account: number, id: number): Promise<SerializedRecord | undefined> {
  const row = await read(categoryById, { account, id })
  return row && { record: row.record, etag: etagOf(row.version) }
}

export async function listCategories (read: Read, account: number, page: PageRequest): Promise<Page> {
  return await read(...pageQuery(categories, page, account)) as Page
}

const table: Table = { name: 'categories', id: 'id', columns: { account_id: 'bigint', name: 'text', description: 'text' } }

export const createCategory: Command<{ account: number, category: NewCategory }, Category> = {
  name: 'createCategory',
  creates: table,
  async run ({ allocateIds, insert, categories: held }, inputs) {
    const ids = await allocateIds(table, inputs.length)
    insert(table, inputs.map(({ account, category }, i) => ({ id: ids[i]!, account_id: account, ...category })))
    return inputs.map(({ account, category: fields }, i) => {
      const category = { id: ids[i]!, ...fields }
      held.set(category.id, account)
      return { record: category, etag: etagOf(1), events: [{ type: 'category.created', data: { category } }] }
    })
  }
}

interface CategoryRef { account: number, categoryId: number, conditions: Conditions }

export const updateCategory: Command<CategoryRef & { patch: CategoryUpdate }, Category> = {
  name: 'updateCategory',
  rows: ({ categoryId }) => ({ categories: [categoryId] }),
  async run (tx, inputs) {
    const loaded = await loadCategories(tx, inputs)
    const changed = new Set<LoadedCategory>()
    const outcomes = inputs.map(({ account, categoryId, patch, conditions }): CommandResult<Category> => {
      const category = loaded.get(categoryId)
      if (category?.account !== account) return new CategoryNotFound()
      const refused = checkPreconditions(conditions, etagOf(category.version))
      if (refused !== undefined) return refused
      const { name = category.name, description = category.description } = patch
      if (name === category.name && description === category.description) {
        return { record: categoryRecord(category), etag: etagOf(category.version) }
      }
      Object.assign(category, { name, description, version: category.version + 1 })
      changed.add(category)
      const record = categoryRecord(category)
      return { record, etag: etagOf(category.version), events: [{ type: 'category.updated', data: { category: record } }] }
    })
    const { dialect, execute } = tx
    await execute(`
      UPDATE categories SET name = i.name, description = i.description, version = i.version
      FROM ${dialect.jsonRows('i', { id: 'bigint', name: 'text', description: 'text', version: 'bigint' })}
      WHERE categories.id = i.id`, [...changed])
    return outcomes
  }
}

export const deleteCategory: Command<CategoryRef, undefined> = {
  name: 'deleteCategory',
  rows: ({ categoryId }) => ({ categories: [categoryId] }),
  async run (tx, inputs) {
    const { dialect, query, execute, categories: held } = tx
    const loaded = await loadCategories(tx, inputs)
    const input = dialect.jsonRows('i', { id: 'bigint' })
    const used = new Set((await query<{ id: number }>(
      `SELECT i.id FROM ${input} WHERE EXISTS (SELECT 1 FROM pets p WHERE p.category_id = i.id)`,
      inputs.map(({ categoryId }) => ({ id: categoryId })))).map(({ id }) => id))
    const gone: Array<{ id: number }> = []
    const outcomes = inputs.map(({ account, categoryId, conditions }): CommandResult<undefined> => {
      const category = loaded.get(categoryId)
      if (category?.account !== account) return new CategoryNotFound()
      const refused = checkPreconditions(conditions, etagOf(category.version))
      if (refused !== undefined) return refused
      if (used.has(categoryId)) return new CategoryInUse()
      loaded.delete(categoryId)
      held.delete(categoryId)
      gone.push({ id: categoryId })
      return { record: undefined, events: [{ type: 'category.deleted', data: { category: categoryRecord(category) } }] }
    })
    await execute(`DELETE FROM categories WHERE id IN (SELECT i.id FROM ${input})`, gone)
    return outcomes
  }
}

interface LoadedCategory { id: number, account: number, name: string, description: string | null, version: number }

async function loadCategories ({ dialect, query }: Transaction, inputs: CategoryRef[]): Promise<Map<number, LoadedCategory>> {
  const rows = await query<LoadedCategory>(`
    SELECT c.id, c.account_id AS account, c.name, c.description, c.version
    FROM ${dialect.jsonRows('i', { account: 'bigint', id: 'bigint' })}
    JOIN categories c ON c.id = i.id AND c.account_id = i.account`,
  distinct(inputs.map(({ account, categoryId }) => ({ account, id: categoryId }))))
  return new Map(rows.map((row) => [row.id, row]))
}

function categoryRecord ({ id, name, description }: LoadedCategory): Category {
  return description === null ? { id, name } : { id, name, description }
}
