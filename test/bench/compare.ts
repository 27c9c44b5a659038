import { request } from 'node:http'
import { isDeepStrictEqual } from 'node:util'
import type { Server } from './processes.ts'
import { keyed, newConnection, order, randomFrom, statusOf, type Exchange, type Scope } from './requests.ts'
import { LAST_UNIT, type Shape } from './seed.ts'
import { untilSettled, type Row, type Store } from './stores.ts'
import { workloads } from './workloads.ts'

/** The number of requests of each workload to compare. */
const SAMPLE = 12

const TABLES = [
  'accounts',
  'api_keys',
  'categories',
  'pets',
  'inventory_items',
  'orders',
  'messages',
  'events',
  'deliveries',
  'idempotency_records'
]

/** Tables of which only the rows changed since the seed are compared. The others are compared completely. */
const SEEDED = ['pets', 'inventory_items']

interface Runner { server: Server, store: Store }

interface Answer { status: number, headers: Record<string, unknown>, body: string }

/** Requests that workloads do not send, or only seldom. */
function rareRequests ({ pets }: Scope): Exchange[] {
  const whole = order(LAST_UNIT)
  const again = keyed(order(1))
  return [
    { method: 'GET', path: '/pets?limit=20' },
    { method: 'GET', path: `/pets?limit=20&cursor=${pets.toString(36)}` },
    { method: 'POST', path: '/pets', body: { name: 'Quote " and 🐕', categoryId: 1, status: 'pending' } },
    keyed({ method: 'POST', path: '/pets', body: { name: 'Quote " and 🐕', categoryId: 1 } }),
    { method: 'PATCH', path: `/pets/${LAST_UNIT}`, body: { name: 'Quote " and 🐕' } },
    // It changes nothing.
    { method: 'PATCH', path: `/pets/${LAST_UNIT}`, body: { name: 'Quote " and 🐕' } },
    { method: 'POST', path: '/store/orders', body: { petId: 1, quantity: 2, complete: true } },
    // The pet is sold out, then its order is cancelled, and then it is sold out again.
    { ...whole, learn: (connection, field) => { connection.order = field('location') } },
    { method: 'GET', path: `/pets/${LAST_UNIT}` },
    { method: 'DELETE', path: THE_ORDER },
    { method: 'GET', path: `/pets/${LAST_UNIT}` },
    keyed(whole),
    again,
    // From here on, no request creates a row: ids of refused rows may be lost.
    again,
    { ...order(2), headers: again.headers!, refusal: 422 },
    { ...whole, refusal: 409 },
    { ...keyed(whole), refusal: 409 },
    { ...order(1), body: { petId: 1, quantity: 2_000_000_000 }, refusal: 409 },
    { method: 'PATCH', path: '/pets/1000000000', body: { name: 'Rex' }, refusal: 404 },
    { method: 'DELETE', path: '/store/orders/1000000000', refusal: 404 },
    { method: 'DELETE', path: THE_ORDER, refusal: 404 }
  ]
}

/** Stands for the path of the order that the connection remembers. */
const THE_ORDER = ''

/**
 * Sends the same requests to each server, one after the other, and compares answers and rows with those of the first.
 * A comparison of speed is meaningless when the servers do not do the same.
 *
 * @throws an error that names the first difference
 */
export async function compare (
  servers: Runner[],
  scope: Scope,
  shape: Shape
): Promise<number> {
  const [first, ...others] = servers as [Runner, ...Runner[]]
  const { exchanges, answers } = await askFirst(first, scope, shape)
  const rows = await rowsOf(first.store, scope.pets)
  await Promise.all(others.map(async (other) => {
    const { server: { name } } = other
    for (const [i, exchange] of exchanges.entries()) {
      const { method, path } = exchange
      same(`${name} to ${method} ${path}`, await ask(other, scope.key, exchange), answers[i])
    }
    const found = await rowsOf(other.store, scope.pets)
    for (const table of Object.keys(rows)) same(`the rows of ${name} in ${table}`, found[table], rows[table])
  }))
  return exchanges.length
}

/** Sends requests of all workloads on a store to the first server. Some of them depend on answers before them. */
async function askFirst (
  first: Runner, scope: Scope, shape: Shape
): Promise<{ exchanges: Exchange[], answers: Answer[] }> {
  const random = randomFrom(1)
  const connection = newConnection(0)
  const exchanges: Exchange[] = []
  const answers: Answer[] = []
  const refused: Exchange[] = []

  async function send (planned: Exchange): Promise<void> {
    const exchange = planned.path === THE_ORDER ? { ...planned, path: connection.order! } : planned
    const { method, path } = exchange
    const answer = await ask(first, scope.key, exchange)
    same(`the status of ${method} ${path}`, answer.status, statusOf(exchange))
    if (exchange.refusal === undefined) exchange.learn?.(connection, (name) => answer.headers[name] as string)
    exchanges.push(exchange)
    answers.push(answer)
  }

  for (const { next } of Object.values(workloads).filter((workload) => (workload.shape ?? 'usual') === shape)) {
    for (let i = 0; i < SAMPLE; i++) {
      const exchange = next(random, scope, connection)
      if (exchange.refusal === undefined) await send(exchange)
      else refused.push(exchange)
    }
  }
  for (const exchange of [...rareRequests(scope), ...refused]) await send(exchange)
  return { exchanges, answers }
}

function same (what: string, found: unknown, expected: unknown): void {
  if (isDeepStrictEqual(found, expected)) return
  throw new Error(
    `${what}: ${JSON.stringify(found, null, 1)}\nand not ${JSON.stringify(expected, null, 1)}`
  )
}

async function ask ({ server, store }: Runner, key: string, exchange: Exchange): Promise<Answer> {
  const answer = await send(server.port, key, exchange)
  // The message gets its second event when it is delivered. Waits for it, so that no other event comes between.
  if (exchange.path === '/messages') await untilSettled(store)
  return answer
}

async function send (port: number, key: string, { method, path, body, headers: own }: Exchange): Promise<Answer> {
  return await new Promise((resolve, reject) => {
    const headers = { ...own, authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) }
    request({ port, host: '127.0.0.1', method, path, headers }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => { text += chunk }).on('end', () => {
        const { 'request-id': id, date, ...others } = response.headers
        const present = { ...others, 'request-id': typeof id, date: typeof date }
        resolve({
          status: response.statusCode!,
          headers: JSON.parse(withoutChance(JSON.stringify(present))) as Answer['headers'],
          body: withoutChance(text)
        })
      })
    }).on('error', reject).end(body && JSON.stringify(body))
  })
}

async function rowsOf (store: Store, pets: number): Promise<Record<string, unknown>> {
  const found: Record<string, unknown> = {}
  for (const table of TABLES) {
    const column = table === 'pets' ? 'id' : 'pet_id'
    const rows = await store.query(
      `SELECT * FROM ${table}${SEEDED.includes(table) ? ` WHERE version > 1 OR ${column} > ${pets}` : ''}`
    )
    found[table] = rows.map(plain).sort()
    found[`${table} (count)`] = Number((await store.query(`SELECT count(*) AS count FROM ${table}`))[0]!['count'])
  }
  return found
}

/**
 * Converts a row to text, without times and random values. A boolean of SQLite is 0 or 1; a 64-bit integer of
 * PostgreSQL is a text.
 */
function plain (row: Row): string {
  const values = Object.entries(row).map(([name, value]) => [
    name,
    value !== null && (name.endsWith('_at') || name === 'timestamp')
      ? 'a time'
      : typeof value === 'boolean'
        ? Number(value)
        : value === null
          ? null
          : String(value)
  ])
  return withoutChance(JSON.stringify(values))
}

function withoutChance (text: string): string {
  return text
    .replace(/(msg_[0-9a-z]{10})[0-9a-z]{16}/g, '$1…')
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, 'a time')
}
