// Only on SQLite: calls a pure function.

import t, { type Test } from 'tap'
import { completeOrder, releaseStock, setStock, reserveStock, setStatus, type Stock } from '../../src/pets/rules.ts'
import { PET_STATUSES, type PetStatus } from '../../src/pets/schemas.ts'

/**
 * Every state a pet can be in, by name: status (A available, P pending, X sold), stock (— never
 * counted, + some, 0 none) and open orders. A pet was ordered only if it was counted.
 */
const STATES: Record<string, Stock> = {
  'A —': { status: 'available', quantity: undefined, open: 0 },
  'A +': { status: 'available', quantity: 5, open: 0 },
  'A + open': { status: 'available', quantity: 5, open: 2 },
  'P —': { status: 'pending', quantity: undefined, open: 0 },
  'P +': { status: 'pending', quantity: 5, open: 0 },
  'P + open': { status: 'pending', quantity: 5, open: 2 },
  'P 0 open': { status: 'pending', quantity: 0, open: 2 },
  'X —': { status: 'sold', quantity: undefined, open: 0 },
  'X +': { status: 'sold', quantity: 5, open: 0 },
  'X + open': { status: 'sold', quantity: 5, open: 2 },
  'X 0': { status: 'sold', quantity: 0, open: 0 },
  'X 0 open': { status: 'sold', quantity: 0, open: 2 }
}

const LETTERS: Record<string, PetStatus> = { A: 'available', P: 'pending', X: 'sold' }

/** `no`: the status cannot be set. Anything else that is no letter: why an order is refused. */
type Cell = 'A' | 'P' | 'X' | 'no' | 'none left' | 'not for sale'

t.test('a status set by hand', async (t) => {
  const table: Record<string, [toA: Cell, toP: Cell, toX: Cell]> = {
    'A —': ['A', 'P', 'X'],
    'A +': ['A', 'P', 'X'],
    'A + open': ['A', 'P', 'X'],
    'P —': ['A', 'P', 'X'],
    'P +': ['A', 'P', 'X'],
    'P + open': ['A', 'P', 'X'],
    'P 0 open': ['no', 'P', 'X'],
    'X —': ['no', 'no', 'X'],
    'X +': ['no', 'no', 'X'],
    'X + open': ['no', 'no', 'X'],
    'X 0': ['no', 'no', 'X'],
    'X 0 open': ['no', 'no', 'X']
  }
  forEachState(t, table, (stock, cells, name) => {
    PET_STATUSES.forEach((status, i) => {
      const expected = cells[i] === 'no' ? undefined : { ...stock, status: LETTERS[cells[i]!] }
      t.same(setStatus(stock, status), expected, `${name} to ${status}`)
    })
  })
})

t.test('a count', async (t) => {
  const table: Record<string, [toNone: Cell, toSome: Cell]> = {
    'A —': ['X', 'A'],
    'A +': ['X', 'A'],
    'A + open': ['P', 'A'],
    'P —': ['X', 'A'],
    'P +': ['X', 'A'],
    'P + open': ['P', 'A'],
    'P 0 open': ['P', 'A'],
    'X —': ['X', 'A'],
    'X +': ['X', 'A'],
    'X + open': ['P', 'A'],
    'X 0': ['X', 'A'],
    'X 0 open': ['P', 'A']
  }
  forEachState(t, table, (stock, [toNone, toSome], name) => {
    t.same(setStock(stock, 0), { ...stock, quantity: 0, status: LETTERS[toNone] }, `${name} to 0`)
    // 5 is the figure that some of them have: a count is a count.
    for (const quantity of [1, 5, 2147483647]) { t.same(setStock(stock, quantity), { ...stock, quantity, status: LETTERS[toSome] }, `${name} to ${quantity}`) }
  })
})

t.test('an order', async (t) => {
  /** Open and placed complete differ only where the last unit goes. */
  const table: Record<string, [unitsLeft: Cell, lastUnit: Cell, lastUnitComplete: Cell, tooMany: Cell]> = {
    'A —': ['none left', 'none left', 'none left', 'none left'],
    'A +': ['A', 'P', 'X', 'none left'],
    'A + open': ['A', 'P', 'P', 'none left'],
    'P —': ['not for sale', 'not for sale', 'not for sale', 'not for sale'],
    'P +': ['not for sale', 'not for sale', 'not for sale', 'not for sale'],
    'P + open': ['not for sale', 'not for sale', 'not for sale', 'not for sale'],
    'P 0 open': ['not for sale', 'not for sale', 'not for sale', 'not for sale'],
    'X —': ['not for sale', 'not for sale', 'not for sale', 'not for sale'],
    'X +': ['not for sale', 'not for sale', 'not for sale', 'not for sale'],
    'X + open': ['not for sale', 'not for sale', 'not for sale', 'not for sale'],
    'X 0': ['not for sale', 'not for sale', 'not for sale', 'not for sale'],
    'X 0 open': ['not for sale', 'not for sale', 'not for sale', 'not for sale']
  }
  forEachState(t, table, (stock, [unitsLeft, lastUnit, lastUnitComplete, tooMany], name) => {
    const cases: Array<[quantity: number, complete: boolean, cell: Cell]> = [
      [1, false, unitsLeft], [4, false, unitsLeft], [4, true, unitsLeft],
      [5, false, lastUnit], [5, true, lastUnitComplete],
      [6, false, tooMany], [6, true, tooMany], [2147483647, false, tooMany]
    ]
    for (const [quantity, complete, cell] of cases) {
      const expected = cell === 'none left'
        ? 'insufficient_stock'
        : cell === 'not for sale'
          ? 'pet_not_available'
          : { status: LETTERS[cell], quantity: stock.quantity! - quantity, open: stock.open + (complete ? 0 : 1) }
      t.same(reserveStock(stock, quantity, complete), expected, `${name}, ${quantity}${complete ? ', complete' : ''}`)
    }
  })
})

t.test('a completed order', async (t) => {
  /** Only what has open orders: with more of them, and as the last. */
  const table: Record<string, [notLast: Cell, last: Cell]> = {
    'A + open': ['A', 'A'],
    'P + open': ['P', 'P'],
    'P 0 open': ['P', 'X'],
    'X + open': ['X', 'X'],
    'X 0 open': ['X', 'X']
  }
  forEachState(t, table, (stock, [notLast, last], name) => {
    t.same(completeOrder(stock), { ...stock, open: 1, status: LETTERS[notLast] }, `${name}, not the last`)
    t.same(completeOrder({ ...stock, open: 1 }), { ...stock, open: 0, status: LETTERS[last] }, `${name}, the last`)
  })
})

t.test('a cancelled order', async (t) => {
  const table: Record<string, [cancelled: Cell]> = {
    'A + open': ['A'],
    'P + open': ['P'],
    'P 0 open': ['A'],
    'X + open': ['X'],
    'X 0 open': ['A']
  }
  forEachState(t, table, (stock, [cancelled], name) => {
    for (const open of [1, 2]) {
      t.same(
        releaseStock({ ...stock, open }, 3),
        { status: LETTERS[cancelled], quantity: stock.quantity! + 3, open: open - 1 },
        `${name}, ${open} of them`
      )
    }
  })
})

t.test('no rule changes the state it is given', async (t) => {
  for (const [name, stock] of Object.entries(STATES)) {
    const before = Object.freeze({ ...stock })
    for (const rule of [
      () => setStatus(before, 'sold'),
      () => setStock(before, 0),
      () => reserveStock(before, 5, false),
      () => completeOrder(before),
      () => releaseStock(before, 1)
    ]) {
      t.doesNotThrow(rule, name)
    }
  }
})

t.test('no order of events leads to a state that cannot occur, or loses a unit', async (t) => {
  const start: Stock[] = PET_STATUSES.map((status) => ({ status, quantity: undefined, open: 0 }))
  const seen = new Map(start.map((stock) => [JSON.stringify(stock), stock]))
  for (const stock of seen.values()) {
    for (const { event, next, units } of steps(stock)) {
      const story = `${JSON.stringify(stock)} ${event} ${JSON.stringify(next)}`
      if (next.quantity === 0 && next.status === 'available') t.fail(`none in stock and available: ${story}`)
      if (next.quantity === 0 && next.open === 0 && next.status !== 'sold') { t.fail(`none in stock, none open and not sold: ${story}`) }
      if (next.quantity !== undefined && next.quantity < 0) t.fail(`less than none: ${story}`)
      if ((next.quantity ?? 0) - (stock.quantity ?? 0) !== units) t.fail(`units lost or made: ${story}`)
      if (next.open <= 3 && (next.quantity ?? 0) <= 4) seen.set(JSON.stringify(next), next)
    }
  }
  t.ok(seen.size > 40, `${seen.size} states were reached`)
})

/** What can happen in a state, and how many units come into the stock by it. */
function steps (stock: Stock): Array<{ event: string, next: Stock, units: number }> {
  const found: Array<{ event: string, next: Stock, units: number }> = []
  for (const status of PET_STATUSES) {
    const next = setStatus(stock, status)
    if (next !== undefined) found.push({ event: `set ${status}`, next, units: 0 })
  }
  for (const quantity of [0, 1, 2, 3]) {
    found.push({ event: `count ${quantity}`, next: setStock(stock, quantity), units: quantity - (stock.quantity ?? 0) })
  }
  for (const [quantity, done] of [[1, false], [2, false], [1, true], [2, true]] as const) {
    const next = reserveStock(stock, quantity, done)
    if (typeof next !== 'string') { found.push({ event: `order ${quantity}${done ? ' complete' : ''}`, next, units: -quantity }) }
  }
  if (stock.open > 0) {
    found.push({ event: 'complete', next: completeOrder(stock), units: 0 })
    found.push({ event: 'cancel 1', next: releaseStock(stock, 1), units: 1 })
  }
  return found
}

/** A table without a row for a state of its kind has forgotten it. */
function forEachState<Row> (
  t: Test,
  table: Record<string, Row>,
  check: (stock: Stock, row: Row, name: string) => void
): void {
  const whole = Object.keys(table).length === Object.keys(STATES).length
  for (const [name, stock] of Object.entries(STATES)) {
    if (!whole && stock.open === 0) continue
    t.ok(table[name], `${name} is in the table`)
    check(stock, table[name]!, name)
  }
}
