import { defineError } from '../errors.ts'

export const OrderNotFound = defineError('order_not_found', 'Your store has no order with this id.', 404)
export const InsufficientStock = defineError(
  'insufficient_stock', '%s.', 409, 'The pet has 1 in stock, fewer than the 2 ordered')
export const OrderAlreadyShipped = defineError(
  'order_already_shipped', 'The order is complete and can no longer be %s.', 409, 'changed')
