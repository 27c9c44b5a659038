// Only on SQLite: checks the search itself; the scenario runs on both databases.

import t from 'tap'
import { checkHistory } from './check.ts'
import type { Event, Operation, Request } from './operation.ts'

// Small histories of one pet, written by hand, which begin as that of every pet: it is created and counted.

const NAME = 'pet 1'
const A = '2031-01-01T00:00:00.000Z'
const B = '2031-01-02T00:00:00.000Z'

type Said = Operation['answer']

/** An operation from `call` to `end` in ms. Without an answer, its outcome is unknown. */
function op (call: number, end: number, request: Request, answer: Said, more: Partial<Operation> = {}): Operation {
  const answered = answer === undefined ? { return: Infinity } : { return: end, answer }
  return { client: 1, object: NAME, request, call, ...answered, ...more }
}

const pet = (name = NAME, status = 'available'): object => ({ name, status })
const stock = (quantity: number, status = 'available'): object => ({ quantity, status })
const order = (shipDate: string, quantity: number, complete = false): object => ({ shipDate, quantity, complete })

const refused = (status: number, code: string): Said => ({ status, code })
const stockIs = (quantity: number, version: number, status = 'available'): Said =>
  ({ status: 200, body: stock(quantity, status), etag: `"${version}-${status}"` })
const petIs = (version: number, name?: string, status?: string): Said =>
  ({ status: 200, body: pet(name, status), etag: `"${version}"` })

const readPet: Request = { kind: 'read pet' }
const readStock: Request = { kind: 'read stock' }
const rename = (name: string): Request => ({ kind: 'change pet', name })
const place = (shipDate: string, quantity: number): Request =>
  ({ kind: 'place order', order: shipDate, quantity, complete: false })
const placed = (shipDate: string, quantity: number, replayed = false): Said =>
  ({ status: 201, body: order(shipDate, quantity), etag: '"1"', ...replayed && { replayed } })

const BEGINNING = [
  op(0, 1, { kind: 'create pet', name: NAME }, { status: 201, body: pet(), etag: '"1"' }),
  op(2, 3, { kind: 'count', quantity: 5 }, stockIs(5, 1))
]
const FIRST_EVENTS: Array<[type: string, data: object]> = [
  ['pet.created', { pet: pet() }], ['inventory.counted', { inventory: stock(5), previousQuantity: 0 }]
]
const orderEvent = (type: string, shipDate: string, quantity: number, left: number): [string, object] =>
  [`order.${type}`, { order: order(shipDate, quantity), inventory: stock(left) }]

function violationsOf (operations: Operation[], events: Array<[type: string, data: object]>): string[] {
  const all = [...FIRST_EVENTS, ...events].map(([type, data], i): Event =>
    ({ id: i + 1, object: NAME, type, data: data as Event['data'] }))
  const { violations, undecided } = checkHistory([...BEGINNING, ...operations], { events: all, polls: [] })
  t.equal(undecided, 0)
  return violations
}

const ORDERED = [orderEvent('placed', A, 2, 3)]
const key = 'k'

const GOOD: Record<string, [operations: Operation[], events: Array<[string, object]>]> = {
  'an order takes its units': [
    [op(10, 11, place(A, 2), placed(A, 2)), op(12, 13, readStock, stockIs(3, 2))], ORDERED
  ],
  'a read beside an order sees either stock': [
    [op(10, 20, place(A, 2), placed(A, 2)), op(11, 12, readStock, stockIs(5, 1)), op(13, 14, readStock, stockIs(3, 2))],
    ORDERED
  ],
  'of two patches with one entity tag, the second is refused': [
    [
      op(10, 20, rename('a'), petIs(2, 'a'), { ifMatch: '"1"' }),
      op(10, 20, rename('b'), refused(412, 'precondition_failed'), { ifMatch: '"1"' })
    ],
    [['pet.updated', { pet: pet('a'), inventory: stock(5) }]]
  ],
  'an order without an answer happened, and its repetition is a replay': [
    [
      op(10, 0, place(A, 2), undefined, { key }), op(20, 21, place(A, 2), placed(A, 2, true), { key }),
      op(22, 23, readStock, stockIs(3, 2))
    ],
    ORDERED
  ],
  'an order without an answer never happened, and its repetition is the first': [
    [op(10, 0, place(A, 2), undefined, { key }), op(20, 21, place(A, 2), placed(A, 2), { key })], ORDERED
  ],
  'an order without an answer never happened': [
    [op(10, 0, place(A, 2), undefined), op(20, 21, readStock, stockIs(5, 1))], []
  ],
  'a refused request leaves its key free': [
    [
      op(10, 11, place(A, 9), refused(409, 'insufficient_stock'), { key }),
      op(12, 13, place(A, 2), placed(A, 2), { key })
    ],
    ORDERED
  ],
  'a key that is used refuses another request': [
    [
      op(10, 11, place(A, 2), placed(A, 2), { key }),
      op(12, 13, { kind: 'delete pet' }, refused(422, 'idempotency_key_reused'), { key })
    ],
    ORDERED
  ],
  'a count of the units that are there changes nothing, or the status after a patch at the same time': [
    [
      op(10, 20, { kind: 'count', quantity: 5 }, stockIs(5, 1)),
      op(10, 20, { kind: 'change pet', status: 'pending' }, petIs(2, NAME, 'pending')),
      op(21, 22, readPet, petIs(3))
    ],
    [
      ['pet.updated', { pet: pet(NAME, 'pending'), inventory: stock(5, 'pending') }],
      ['inventory.counted', { inventory: stock(5), previousQuantity: 5 }],
      ['pet.updated', { pet: pet(), inventory: stock(5) }]
    ]
  ],
  'a replay repeats an answer that is no longer true': [
    [
      op(10, 11, rename('a'), petIs(2, 'a'), { key }), op(12, 13, rename('b'), petIs(3, 'b')),
      op(14, 15, rename('a'), { ...petIs(2, 'a'), replayed: true } as Said, { key }), op(16, 17, readPet, petIs(3, 'b'))
    ],
    ['a', 'b'].map((name) => ['pet.updated', { pet: pet(name), inventory: stock(5) }])
  ]
}

const BAD: Record<string, [...typeof GOOD[string], violation: RegExp]> = {
  'a stale read': [
    [op(10, 11, place(A, 2), placed(A, 2)), op(12, 13, readStock, stockIs(5, 1))], ORDERED,
    /no order of the requests.*✖ 0\.0 – 1\.0 ms, client 1: read stock → 200 "1-available" \{"quantity":5/s
  ],
  'a lost update': [
    [
      op(10, 11, rename('a'), petIs(2, 'a'), { ifMatch: '"1"' }),
      op(12, 13, rename('b'), petIs(2, 'b'), { ifMatch: '"1"' })
    ],
    ['a', 'b'].map((name) => ['pet.updated', { pet: pet(name), inventory: stock(5) }]),
    /no order of the requests.*✖.*change pet \{"name":"b"\} If-Match: "1" → 200 "2"/s
  ],
  'a doubled effect': [
    [
      op(10, 0, place(A, 2), undefined, { key }), op(20, 21, place(A, 2), placed(A, 2, true), { key }),
      op(22, 23, readStock, stockIs(1, 3))
    ],
    ORDERED, /no order of the requests.*✖.*read stock/s
  ],
  'a doubled effect that only the feed shows': [
    [op(10, 0, place(A, 2), undefined, { key }), op(20, 21, place(A, 2), placed(A, 2, true), { key })],
    [...ORDERED, orderEvent('placed', A, 2, 1)],
    /no common order.*The feed continues with\n +event 4: order\.placed/s
  ],
  'a request whose key had an answer is executed': [
    [op(10, 11, place(A, 2), placed(A, 2), { key }), op(12, 13, place(A, 2), placed(A, 2), { key })],
    ORDERED, /no order of the requests/
  ],
  'a replay of what never happened': [
    [op(10, 11, place(A, 2), placed(A, 2, true), { key }), op(12, 13, place(A, 2), placed(A, 2, true), { key })],
    ORDERED, /no order of the requests/
  ],
  'units that are lost': [
    [
      op(10, 11, place(A, 2), placed(A, 2)), op(12, 13, { kind: 'cancel order', order: A }, { status: 204 }),
      op(14, 15, readStock, stockIs(3, 3))
    ],
    [...ORDERED, orderEvent('cancelled', A, 2, 5)], /no order of the requests.*✖.*read stock/s
  ],
  'more units ordered than there are': [
    [op(10, 20, place(A, 3), placed(A, 3)), op(10, 20, place(B, 3), placed(B, 3))],
    [orderEvent('placed', A, 3, 2), orderEvent('placed', B, 3, -1)], /no order of the requests/
  ],
  'two events that changed places': [
    [op(10, 11, place(A, 2), placed(A, 2)), op(12, 13, place(B, 1), placed(B, 1))],
    [orderEvent('placed', B, 1, 2), orderEvent('placed', A, 2, 3)], /no common order.*✖.*place order/s
  ],
  'an acknowledged change without an event': [
    [op(10, 11, place(A, 2), placed(A, 2))], [], /no common order.*The feed has no more than its 2 events/s
  ],
  'an event with contents that nobody was answered': [
    [op(10, 11, place(A, 2), placed(A, 2))], [orderEvent('placed', A, 2, 4)], /no common order/
  ]
}

t.test('histories that the model explains', async (t) => {
  for (const [name, [operations, events]] of Object.entries(GOOD)) t.same(violationsOf(operations, events), [], name)
})

t.test('histories that it does not explain', async (t) => {
  for (const [name, [operations, events, violation]] of Object.entries(BAD)) {
    const violations = violationsOf(operations, events)
    t.equal(violations.length, 1, name)
    t.match(violations[0], violation, name)
  }
})

t.test('the feed is in the order of the answers of all objects', async (t) => {
  const message = (n: number, call: number, end: number): Operation => {
    const body = { message: `message ${n}`, status: 'queued' }
    const request: Request = { kind: 'create message', message: body.message }
    return { ...op(call, end, request, { status: 201, body, etag: '"1"' }), object: body.message }
  }
  const event = (n: number, id: number): Event => {
    const message = { message: `message ${n}`, status: 'queued' }
    return { id, object: message.message, type: 'message.created', data: { message } }
  }
  const check = (history: Operation[], events: Event[]): string[] =>
    checkHistory(history, { events, polls: [] }).violations
  const [first, second, beside] = [message(1, 0, 1), message(2, 2, 3), message(2, 0.5, 3)]
  t.same(check([first, second], [event(1, 1), event(2, 2)]), [])
  const swapped = [event(2, 1), event(1, 2)]
  t.match(check([first, second], swapped), [/event 2 \(create message, message 1\) was acknowledged/])
  t.same(check([first, beside], swapped), [], 'at the same time, in either order')

  const poll = { call: 5, return: 6, after: 0, limit: 100, found: [], newest: 0 }
  t.match(checkHistory([first, second], { events: [event(1, 1), event(2, 2)], polls: [poll] }).violations, [
    /ended at event 0, after event 2 \(create message, message 2\) was acknowledged/
  ])
})
