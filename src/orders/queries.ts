import { boolean, integer, jsonObject, optional, time } from '../database/sql/json-object.ts'
import type { ListDefinition } from '../database/sql/keyset-pagination.ts'
import { findRecord, listRecords } from '../database/sql/record-queries.ts'

const members = {
  id: integer('o.id'),
  petId: integer('o.pet_id'),
  quantity: integer('o.quantity'),
  shipDate: optional(time('o.ship_date')),
  complete: boolean('o.complete')
}

export const orderList: ListDefinition = {
  name: 'orders',
  from: 'orders o',
  record: (dialect) => jsonObject(dialect, members),
  filters: {
    petId: { type: 'bigint', column: 'o.pet_id' },
    complete: { type: 'boolean', column: 'o.complete' }
  },
  indexes: [
    { name: 'orders_account_id_id_idx', columns: ['o.account_id'], position: 'o.id' },
    { name: 'orders_account_id_complete_id_idx', columns: ['o.account_id', 'o.complete'], position: 'o.id' },
    {
      name: 'orders_pet_id_account_id_complete_id_idx',
      columns: ['o.pet_id', 'o.account_id', 'o.complete'],
      last: ['false', 'true'],
      position: 'o.id'
    }
  ]
}

export const findOrder = findRecord({ from: 'orders o', members, id: 'o.id' })
export const listOrders = listRecords(orderList)
