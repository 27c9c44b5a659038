import { integer, jsonObject, optional, text } from '../database/sql/json-object.ts'
import type { ListDefinition } from '../database/sql/keyset-pagination.ts'
import { findRecord, listRecords } from '../database/sql/record-queries.ts'

const members = {
  id: integer('c.id'),
  name: text('c.name'),
  description: optional(text('c.description'))
}

export const categoryList: ListDefinition = {
  name: 'categories',
  from: 'categories c',
  record: (dialect) => jsonObject(dialect, members),
  filters: {},
  indexes: [{ name: 'categories_account_id_id_idx', columns: ['c.account_id'], position: 'c.id' }]
}

export const findCategory = findRecord({ from: 'categories c', members, id: 'c.id' })
export const listCategories = listRecords(categoryList)
