// Only on SQLite: calls functions that use no database.

import t from 'tap'
import { AccountRows, IdentityMap } from '../../../src/database/unit-of-work/account-rows.ts'
import { savesOf } from '../../../src/database/unit-of-work/save.ts'
import { sqlite } from '../../../src/database/sqlite/dialect.ts'
import { inventoryItems, orders, pets } from '../../../src/generated/tables.ts'
import { cancelOrder, placeOrder } from '../../../src/orders/commands.ts'

const NOW = '2026-11-21T10:00:00.000Z'
const TABLES = [pets, inventoryItems, orders]

/** Returns the rows of account 1: pet 7 with 3 units, and an open order with the id 5. */
function loaded (): { map: IdentityMap, rows: AccountRows } {
  const map = new IdentityMap()
  const common = { accountId: 1, version: 1, versionFloor: 0 }
  map.addLoaded(pets, [{ id: 7, name: 'Rex', categoryId: 2, status: 'available', ...common }])
  map.addLoaded(inventoryItems, [{ petId: 7, quantity: 3, ...common }])
  map.addLoaded(orders, [{ id: 5, petId: 7, quantity: 1, shipDate: null, complete: false, ...common }])
  map.addIds(orders, [6, 7])
  return { map, rows: new AccountRows(map, 1, NOW) }
}

const place = (quantity: number, rows: AccountRows): unknown =>
  placeOrder.decide({ order: { petId: 7, quantity } }, rows)

t.test('a write that is refused leaves nothing to the next one', (t) => {
  const { map, rows } = loaded()
  t.throws(() => map.attempt(() => {
    place(2, rows)
    throw new Error('refused')
  }), { message: 'refused' })
  t.same(savesOf(sqlite, TABLES, map), [])
  map.attempt(() => place(1, rows))
  t.equal(rows.get(orders, 7)!.quantity, 1)
  t.end()
})

t.test('a row of another account is not there', (t) => {
  const { map } = loaded()
  const eve = new AccountRows(map, 2, NOW)
  t.equal(eve.get(pets, 7), undefined)
  t.same(eve.all(orders), [])
  t.equal(eve.has(orders, { petId: 7, complete: false }), false)
  t.throws(() => place(1, eve), { code: 'UNKNOWN_PET' })
  t.end()
})

t.test('the version of a changed row is that of the engine, whatever the change says', (t) => {
  const { rows } = loaded()
  const changed = rows.update(pets, rows.get(pets, 7)!, { name: 'Max', version: 99 })
  t.equal(changed.version, 2)
  t.equal(rows.get(pets, 7), changed)
  t.equal(rows.update(pets, changed, { name: 'Max' }), changed, 'nothing differs')
  t.end()
})

t.test('each table and kind of change has one statement, and rows that did not change have none', (t) => {
  const { map, rows } = loaded()
  cancelOrder.decide({ orderId: 5, conditions: {} }, rows)
  place(1, rows)
  const kinds = savesOf(sqlite, TABLES, map).map(({ sql }) => sql.trim().split(/\s+/).slice(0, 3).join(' '))
  // The unit that came back was ordered again, so only the version of the count has changed.
  t.same(kinds, ['UPDATE inventory_items SET', 'INSERT INTO orders', 'DELETE FROM orders'])
  t.end()
})
