import { defineError } from '../errors.ts'

export const InventoryNotFound = defineError(
  'inventory_not_found', 'The pet has never been counted. PATCH its inventory entry with a quantity first.', 404)
