import { request } from 'node:http'
import { isDeepStrictEqual } from 'node:util'
import { LAST_UNIT } from './seed.ts'
import type { Server } from './processes.ts'
import { untilSettled, type Row, type Store } from './stores.ts'
import { randomFrom, workloads, type Exchange, type Scope } from './workloads.ts'

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
  'idempotency_records'
]

/** Tables of which only the rows changed since the seed are compared. The others are compared completely. */
const SEEDED = ['pets', 'inventory_items']

interface Answer { status: number, headers: Record<string, unknown>, body: string }

/**
 * Sends the same requests to each server, one after the other, and compares answers and rows with those of the first.
 * A comparison of speed is meaningless when the servers do not do the same.
 *
 * @throws an error that names the first difference
 */
export async function compare (
  servers: Array<{ server: Server, store: Store }>,
  scope: Scope
): Promise<number> {
  const { key, pets } = scope
  const random = randomFrom(1)
  const exchanges: Exchange[] = Object.values(workloads).filter(({ shape }) => shape === undefined)
    .flatMap(({ next }) => Array.from({ length: SAMPLE }, () => next(random, scope)))
  exchanges.push(
    { method: 'GET', path: '/pets?limit=20' },
    { method: 'GET', path: `/pets?limit=20&cursor=${pets.toString(36)}` },
    { method: 'POST', path: '/pets', body: { name: 'Quote " and 🐕', categoryId: 1, status: 'pending' } },
    { method: 'POST', path: '/store/orders', body: { petId: 1, quantity: 2, complete: true } },
    { method: 'POST', path: '/store/orders', body: { petId: LAST_UNIT } },
    { method: 'GET', path: `/pets/${LAST_UNIT}` }
  )

  const [first, ...others] = await Promise.all(
    servers.map(async ({ server, store }) => {
      const answers: Answer[] = []
      for (const exchange of exchanges) {
        answers.push(await send(server.port, key, exchange))
        // The message gets its second event when it is delivered. Waits for it, so that no other event comes between.
        if (exchange.path === '/messages') await untilSettled(store)
      }
      return { name: server.name, answers, rows: await rowsOf(store, pets) }
    })
  )
  for (const { name, answers, rows } of others) {
    answers.forEach((answer, i) => {
      same(`${name} to ${exchanges[i]!.method} ${exchanges[i]!.path}`, answer, first!.answers[i])
    })
    for (const table of Object.keys(rows)) same(`the rows of ${name} in ${table}`, rows[table], first!.rows[table])
  }
  return exchanges.length
}

function same (what: string, found: unknown, expected: unknown): void {
  if (isDeepStrictEqual(found, expected)) return
  throw new Error(
    `${what} differ from petstore's:\n${JSON.stringify(found, null, 1)}\n${JSON.stringify(expected, null, 1)}`
  )
}

async function send (port: number, key: string, { method, path, body }: Exchange): Promise<Answer> {
  return await new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) }
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
