import { openDatabase } from '../../src/database/open-database.ts'
import type { Database } from '../../src/database/prisma-client.ts'
import type { Entry } from './ledger.ts'
import type { Report } from './report.ts'
import type { Store } from './harness.ts'

/**
 * Holds the database against the books of a store, from a connection of its own: what was acknowledged
 * is there exactly once, what was refused is not, nothing is half-done, and units are conserved.
 */
export async function verify (url: string, { account, ledger }: Store, report: Report): Promise<void> {
  const database = await openDatabase({ url, pool: 2, timeout: 20_000 })
  const violations: string[] = []
  try {
    const rows = async <Row>(sql: string): Promise<Row[]> => await query<Row>(database, sql)
    const pets = await rows<{ id: number, label: string, status: string, quantity: number | null, open: number }>(`
      SELECT p.id, p.name AS label, ${database.dialect.fromEnum('p.status')} AS status, s.quantity,
        (SELECT count(*) FROM orders o WHERE o.pet_id = p.id AND NOT o.complete) AS open
      FROM pets p LEFT JOIN inventory_items s ON s.pet_id = p.id WHERE p.account_id = ${account}`)
    const messages = await rows<{ id: string, label: string }>(`SELECT id, message AS label FROM messages WHERE account_id = ${account}`)
    const orders = await rows<{ id: number, label: string, petId: number, quantity: number, complete: boolean | number }>(`
      SELECT id, ${database.dialect.time('ship_date')} AS label, pet_id AS "petId", quantity, complete FROM orders WHERE account_id = ${account}`)

    compare('pet', pets, ledger.pets)
    compare('message', messages, ledger.messages)
    compare('order', orders, new Map([...ledger.orders].map(([label, { id, acknowledged, cancelled }]) =>
      [label, { ...id === undefined ? {} : { id }, acknowledged: cancelled === true ? false : cancelled === undefined ? undefined : acknowledged }])))
    for (const { label, petId, quantity, complete } of orders) {
      const booked = ledger.orders.get(label)
      if (booked === undefined) continue
      if (booked.petId !== petId || booked.quantity !== quantity) violations.push(`order ${label} holds ${quantity} of pet ${petId}, not ${booked.quantity} of ${booked.petId}`)
      if (booked.complete !== undefined && booked.complete !== Boolean(complete)) violations.push(`order ${label} is ${booked.complete ? 'not ' : ''}complete, against what was acknowledged`)
    }
    for (const { id, status, quantity, open } of pets) {
      if (quantity !== null && quantity < 0) violations.push(`the stock of pet ${id} is ${quantity}`)
      if (quantity === 0 && status === 'available') violations.push(`pet ${id} is available without stock`)
      if (quantity === 0 && open === 0 && status !== 'sold') violations.push(`pet ${id} has neither stock nor open orders and is ${status}`)
    }

    const events = await rows<StoredEvent>(`SELECT id, type, data FROM events WHERE account_id = ${account} ORDER BY id`)
    const [counter] = await rows<{ last: number }>(`SELECT last_event_id AS last FROM accounts WHERE id = ${account}`)
    violations.push(...replay(events, counter?.last ?? -1, pets, orders, messages.length))

    const records = await rows<{ key: string }>(`SELECT key FROM idempotency_records WHERE account_id = ${account}`)
    const kept = new Set(records.map(({ key }) => key))
    for (const key of ledger.answers.keys()) if (!kept.has(key)) violations.push(`the answer under ${key} was not kept`)
    for (const key of ledger.refused) if (kept.has(key) && !ledger.answers.has(key)) violations.push(`the refused request under ${key} was remembered`)

    if (database.dialect.name === 'sqlite') {
      const [{ integrity_check: integrity }] = await rows('PRAGMA integrity_check') as [{ integrity_check: string }]
      if (integrity !== 'ok') violations.push(`SQLite's integrity check says: ${integrity}`)
      if ((await rows('PRAGMA foreign_key_check')).length > 0) violations.push('SQLite finds broken foreign keys')
    }
    report.checked += ledger.answers.size
    report.violations.push(...violations)
  } finally {
    await database.close()
  }

  function compare (kind: string, rows: Array<{ id: number | string, label: string }>, books: Map<string, Entry>): void {
    const found = new Map<string, Array<number | string>>()
    for (const { id, label } of rows) found.set(label, [...found.get(label) ?? [], id])
    for (const [label, ids] of found) {
      if (!books.has(label)) violations.push(`${kind} ${label} is there, and nobody asked for it`)
      if (ids.length > 1) violations.push(`${kind} ${label} is there ${ids.length} times`)
    }
    for (const [label, { id, acknowledged }] of books) {
      const [stored] = found.get(label) ?? []
      if (acknowledged === true && stored === undefined) violations.push(`${kind} ${label} was acknowledged and is not there`)
      if (acknowledged === true && stored !== undefined && stored !== id) violations.push(`${kind} ${label} was acknowledged as ${id} and is ${stored}`)
      if (acknowledged === false && stored !== undefined) violations.push(`${kind} ${label} was refused or removed, and is there`)
    }
  }
}

interface StoredEvent { id: number, type: string, data: string }

interface Row { id: number, quantity: number | null }

/**
 * The events are the history: gapless, one for each change, and summed up they give the stock, which was
 * never negative on the way. Units counted = in stock + in orders.
 */
function replay (events: StoredEvent[], last: number, pets: Row[], orders: Array<{ id: number, petId: number, quantity: number, complete: boolean | number }>, messages: number): string[] {
  const violations: string[] = []
  const stock = new Map<number, number>()
  const counted = new Map<number, number>()
  const alive = new Set<number>()
  const complete = new Set<number>()
  const made = { pets: 0, messages: 0 }
  events.forEach(({ id, type, data }, i) => {
    if (id !== i + 1) violations.push(`event ${id} stands where ${i + 1} belongs`)
    const { order, inventory, previousQuantity } = JSON.parse(data) as Data
    if (inventory !== undefined) {
      const before = stock.get(inventory.petId) ?? 0
      let now = before
      if (type === 'order.placed') {
        if (alive.has(order!.id)) violations.push(`order ${order!.id} is placed twice`)
        alive.add(order!.id)
        now -= order!.quantity
      } else if (type === 'order.cancelled') {
        if (!alive.delete(order!.id)) violations.push(`order ${order!.id} is cancelled, and was not there`)
        now += order!.quantity
      } else if (type === 'order.completed') {
        if (complete.has(order!.id)) violations.push(`order ${order!.id} is completed twice`)
        complete.add(order!.id)
      } else if (type === 'inventory.counted') {
        if (previousQuantity !== before) violations.push(`event ${id} counts from ${previousQuantity}, but the stock was ${before}`)
        counted.set(inventory.petId, (counted.get(inventory.petId) ?? 0) + inventory.quantity - previousQuantity!)
        now = inventory.quantity
      }
      if (now !== inventory.quantity) violations.push(`event ${id} (${type}) says that ${inventory.quantity} are left of pet ${inventory.petId}, but it must be ${now}`)
      if (now < 0) violations.push(`the stock of pet ${inventory.petId} was ${now}`)
      stock.set(inventory.petId, now)
    }
    if (type === 'pet.created') made.pets++
    if (type === 'message.created') made.messages++
  })
  if (last !== events.length) violations.push(`the account counts ${last} events and has ${events.length}`)
  if (made.pets !== pets.length) violations.push(`${made.pets} events for ${pets.length} pets`)
  if (made.messages !== messages) violations.push(`${made.messages} events for ${messages} messages`)
  if (alive.size !== orders.length) violations.push(`${alive.size} orders by the events, ${orders.length} in the table`)
  if (complete.size !== orders.filter((order) => Boolean(order.complete)).length) violations.push(`${complete.size} completions by the events, but others in the table`)
  for (const { id, quantity } of pets) {
    const ordered = orders.filter(({ petId }) => petId === id).reduce((sum, order) => sum + order.quantity, 0)
    if ((stock.get(id) ?? 0) !== (quantity ?? 0)) violations.push(`the stock of pet ${id} is ${quantity}, but ${stock.get(id)} by the events`)
    if ((counted.get(id) ?? 0) !== (quantity ?? 0) + ordered) violations.push(`of pet ${id}, ${counted.get(id)} units were counted, but ${quantity} are in stock and ${ordered} in orders`)
  }
  return violations
}

interface Data {
  order?: { id: number, quantity: number }
  inventory?: { petId: number, quantity: number }
  previousQuantity?: number
}

async function query<Row> ({ reader }: Database, sql: string): Promise<Row[]> {
  const found = await reader.$queryRawUnsafe<Array<Record<string, unknown>>>(sql)
  return found.map((row) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, typeof value === 'bigint' ? Number(value) : value])) as Row)
}

/** Sends acknowledged writes again: each is answered as before, and says that it did nothing. */
export async function repeat ({ ledger, client }: Store, report: Report, sample: number): Promise<void> {
  const latest = [...ledger.answers.values()].slice(-sample)
  await Promise.all(latest.map(async ({ act, reply }) => {
    const again = await client.send({ ...act, headers: { 'idempotency-key': act.key } })
    // No answer is no wrong one: the service may be going down.
    if (again.status === 0 || again.status === 503) return
    const same = again.status === reply.status && again.text === reply.text && again.headers.etag === reply.headers.etag && again.headers.location === reply.headers.location
    if (!same) report.violations.push(`${act.method} ${act.path} was answered ${reply.status} ${reply.text}, and again ${again.status} ${again.text}`)
    else if (again.headers['idempotency-replayed'] !== 'true') report.violations.push(`${act.method} ${act.path} was done again`)
  }))
}
