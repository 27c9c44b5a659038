// Only on SQLite: calls functions that use no database.

import t from 'tap'
import { AccountRows, IdentityMap } from '../../../src/database/unit-of-work/account-rows.ts'
import { savesOf } from '../../../src/database/unit-of-work/save.ts'
import { sqlite } from '../../../src/database/sqlite/dialect.ts'
import { inventoryItems, orders, pets } from '../../../src/generated/tables.ts'
import { cancelOrder, placeOrder, updateOrder } from '../../../src/orders/commands.ts'

const NOW = '2026-11-21T10:00:00.000Z'
const TABLES = ['pets', 'inventory_items', 'orders']

interface Given {
  status?: 'available' | 'pending' | 'sold'
  /** Units in stock, or `null` for a pet that was never counted. */
  quantity: number | null
  /** An order of account 1 with the id 5, open or complete. */
  order?: { complete: boolean, quantity: number }
  /** Whether the database has another open order. */
  other?: boolean
}

/** Returns the rows of account 1, with pet 7, as the first message of a group would load them. */
function loaded (
  { status = 'available', quantity, order, other = false }: Given
): { map: IdentityMap, rows: AccountRows } {
  const map = new IdentityMap()
  const common = { accountId: 1, version: 1, versionFloor: 0 }
  map.addLoaded(pets, [{ id: 7, name: 'Rex', categoryId: 2, status, ...common }])
  if (quantity !== null) map.addLoaded(inventoryItems, [{ petId: 7, quantity, ...common }])
  if (order !== undefined) map.addLoaded(orders, [{ id: 5, petId: 7, shipDate: null, ...order, ...common }])
  if (other) map.addOther(1, orders, { petId: 7, complete: false })
  map.addIds(orders, [6, 7])
  return { map, rows: new AccountRows(map, 1, NOW) }
}

const place = (quantity: number, complete = false) => (rows: AccountRows): unknown =>
  placeOrder.decide({ order: { petId: 7, quantity, complete } }, rows)
const ship = (rows: AccountRows): unknown =>
  updateOrder.decide({ orderId: 5, patch: { complete: true }, conditions: {} }, rows)
const cancel = (rows: AccountRows): unknown => cancelOrder.decide({ orderId: 5, conditions: {} }, rows)

const CASES: Record<string, { given: Given, write: (rows: AccountRows) => unknown, pet: string, units: number }> = {
  'an order that leaves units': { given: { quantity: 3 }, write: place(2), pet: 'available', units: 1 },
  'an open order of the last units': { given: { quantity: 2 }, write: place(2), pet: 'pending', units: 0 },
  'a complete order of the last units': { given: { quantity: 2 }, write: place(2, true), pet: 'sold', units: 0 },
  'a complete order of the last units beside an open one': {
    given: { quantity: 2, other: true }, write: place(2, true), pet: 'pending', units: 0
  },
  'the last open order is shipped': {
    given: { status: 'pending', quantity: 0, order: { complete: false, quantity: 2 } },
    write: ship,
    pet: 'sold',
    units: 0
  },
  'an open order is shipped beside another': {
    given: { status: 'pending', quantity: 0, order: { complete: false, quantity: 2 }, other: true },
    write: ship,
    pet: 'pending',
    units: 0
  },
  'an order is cancelled': {
    given: { status: 'pending', quantity: 0, order: { complete: false, quantity: 2 } },
    write: cancel,
    pet: 'available',
    units: 2
  }
}

t.test('writes decide over the rows of their account', (t) => {
  for (const [name, { given, write, pet, units }] of Object.entries(CASES)) {
    const { rows } = loaded(given)
    write(rows)
    t.equal(rows.get(pets, 7)!.status, pet, name)
    t.equal(rows.get(inventoryItems, 7)!.quantity, units, name)
  }
  t.end()
})

t.test('a write that is refused leaves nothing to the next one', (t) => {
  const { map, rows } = loaded({ quantity: 3 })
  t.throws(() => map.attempt(() => {
    place(2)(rows)
    throw new Error('refused')
  }), { message: 'refused' })
  t.same(savesOf(sqlite, TABLES, map), [])
  map.attempt(() => place(1)(rows))
  t.equal(rows.get(orders, 7)!.quantity, 1)
  t.end()
})

t.test('a row of another account is not there', (t) => {
  const { map } = loaded({ quantity: 3, order: { complete: false, quantity: 1 } })
  const eve = new AccountRows(map, 2, NOW)
  t.equal(eve.get(pets, 7), undefined)
  t.same(eve.all(orders), [])
  t.equal(eve.has(orders, { petId: 7, complete: false }), false)
  t.throws(() => place(1)(eve), { code: 'UNKNOWN_PET' })
  t.end()
})

t.test('each table and kind of change has one statement, and rows that did not change have none', (t) => {
  const { map, rows } = loaded({ quantity: 3, order: { complete: false, quantity: 1 } })
  cancel(rows)
  place(1)(rows)
  const kinds = savesOf(sqlite, TABLES, map).map(({ sql }) => sql.trim().split(/\s+/).slice(0, 3).join(' '))
  // The unit that came back was ordered again, so only the version of the count has changed.
  t.same(kinds, ['UPDATE inventory_items SET', 'INSERT INTO orders', 'DELETE FROM orders'])
  t.end()
})
