import { enumText, integer, jsonObject, text } from '../database/sql/json-object.ts'
import type { ListDefinition } from '../database/sql/keyset-pagination.ts'
import { findRecord, listRecords } from '../database/sql/record-queries.ts'

const members = {
  id: integer('p.id'),
  name: text('p.name'),
  categoryId: integer('p.category_id'),
  status: enumText('p.status')
}

export const petList: ListDefinition = {
  name: 'pets',
  from: 'pets p',
  record: (dialect) => jsonObject(dialect, members),
  filters: {
    status: { type: 'text', column: 'p.status', enum: 'pet_status' },
    categoryId: { type: 'bigint', column: 'p.category_id' },
    id: { type: 'json', column: 'p.id' }
  },
  indexes: [
    { name: 'pets_account_id_id_idx', columns: ['p.account_id'], position: 'p.id' },
    { name: 'pets_category_id_account_id_id_idx', columns: ['p.category_id', 'p.account_id'], position: 'p.id' },
    { name: 'pets_account_id_status_id_idx', columns: ['p.account_id', 'p.status'], position: 'p.id' },
    {
      name: 'pets_account_id_category_id_status_id_idx',
      columns: ['p.account_id', 'p.category_id', 'p.status'],
      position: 'p.id'
    }
  ]
}

export const findPet = findRecord({ from: 'pets p', members, id: 'p.id' })
export const listPets = listRecords(petList)
