import { findRecord, listOf, listRecords } from '../database/sql/record-queries.ts'
import { orders } from '../generated/tables.ts'
import { OrderSchema } from './schemas.ts'

export const orderList = listOf(orders, OrderSchema, ['petId', 'complete'])
export const findOrder = findRecord(orders, OrderSchema)
export const listOrders = listRecords(orderList)
