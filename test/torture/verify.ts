import { openDatabase } from '../../src/database/open-database.ts'
import type { Database } from '../../src/database/database.ts'
import type { Entry, OrderEntry } from './ledger.ts'
import type { Report } from './report.ts'
import type { Store } from './harness.ts'

/**
 * Compares the database with the ledger of a store, on a connection of its own. Acknowledged writes must exist exactly
 * once, refused ones not at all, no write in part, and the number of units must be conserved.
 */
export async function verifyStore (url: string, { account, ledger }: Store, report: Report): Promise<void> {
  const database = await openDatabase({ url, pool: 2, timeout: 20_000 })
  const violations: string[] = []
  try {
    const rows = async <Row>(sql: string): Promise<Row[]> => await query<Row>(database, sql)
    const pets = await rows<{ id: number, label: string, status: string, quantity: number | null, open: number }>(`
      SELECT p.id, p.name AS label, CAST(p.status AS text) AS status, s.quantity,
        (SELECT count(*) FROM orders o WHERE o.pet_id = p.id AND NOT o.complete) AS open
      FROM pets p LEFT JOIN inventory_items s ON s.pet_id = p.id WHERE p.account_id = ${account}`)
    const messages = await rows<{ id: string, label: string }>(`
      SELECT id, message AS label FROM messages WHERE account_id = ${account}`)
    const orders = await rows<OrderRow & { label: string }>(`
      SELECT id, ${database.dialect.time('ship_date')} AS label, pet_id AS "petId", quantity, complete
      FROM orders WHERE account_id = ${account}`)

    compare('pet', pets, ledger.pets)
    compare('message', messages, ledger.messages)
    compare('order', orders, new Map([...ledger.orders].map(([label, entry]) => [label, withoutCancelled(entry)])))
    for (const { label, petId, quantity, complete } of orders) {
      const expected = ledger.orders.get(label)
      if (expected === undefined) continue
      if (expected.petId !== petId || expected.quantity !== quantity) {
        const { petId: wantedPet, quantity: wanted } = expected
        violations.push(`order ${label} is for ${quantity} of pet ${petId}, not ${wanted} of ${wantedPet}`)
      }
      if (expected.complete !== undefined && expected.complete !== Boolean(complete)) {
        violations.push(`order ${label} is ${expected.complete ? 'not ' : ''}complete, unlike the acknowledged answer`)
      }
    }
    for (const { id, status, quantity, open } of pets) {
      if (quantity !== null && quantity < 0) violations.push(`the stock of pet ${id} is ${quantity}`)
      if (quantity === 0 && status === 'available') violations.push(`pet ${id} is available without stock`)
      if (quantity === 0 && open === 0 && status !== 'sold') {
        violations.push(`pet ${id} has neither stock nor open orders and is ${status}`)
      }
    }

    const events = await rows<StoredEvent>(`
      SELECT id, type, data FROM events WHERE account_id = ${account} ORDER BY id`)
    const [counter] = await rows<{ last: number }>(`
      SELECT last_event_id AS last FROM accounts WHERE id = ${account}`)
    violations.push(...replayEvents(events, counter?.last ?? -1, pets, orders, messages.length))

    const records = await rows<{ key: string }>(`SELECT key FROM idempotency_records WHERE account_id = ${account}`)
    const kept = new Set(records.map(({ key }) => key))
    for (const key of ledger.answers.keys()) {
      if (!kept.has(key)) violations.push(`the answer for Idempotency-Key ${key} is not stored`)
    }
    for (const key of ledger.refused) {
      if (kept.has(key) && !ledger.answers.has(key)) violations.push(`the refused request with key ${key} is stored`)
    }

    if (database.dialect.name === 'sqlite') {
      const [{ integrity_check: integrity }] = await rows('PRAGMA integrity_check') as [{ integrity_check: string }]
      if (integrity !== 'ok') violations.push(`SQLite's integrity check reports ${integrity}`)
      if ((await rows('PRAGMA foreign_key_check')).length > 0) violations.push('SQLite finds broken foreign keys')
    }
    report.checked += ledger.answers.size
    report.violations.push(...violations)
  } finally {
    await database.close()
  }

  function compare (
    kind: string, rows: Array<{ id: number | string, label: string }>, expected: Map<string, Entry>
  ): void {
    const found = new Map<string, Array<number | string>>()
    for (const { id, label } of rows) found.set(label, [...found.get(label) ?? [], id])
    for (const [label, ids] of found) {
      if (!expected.has(label)) violations.push(`${kind} ${label} exists, but no client requested it`)
      if (ids.length > 1) violations.push(`${kind} ${label} exists ${ids.length} times`)
    }
    for (const [label, { id, acknowledged }] of expected) {
      const [stored] = found.get(label) ?? []
      if (acknowledged === true && stored === undefined) {
        violations.push(`${kind} ${label} was acknowledged, but does not exist`)
      }
      if (acknowledged === true && stored !== undefined && stored !== id) {
        violations.push(`${kind} ${label} was acknowledged as ${id}, but is ${stored}`)
      }
      if (acknowledged === false && stored !== undefined) {
        violations.push(`${kind} ${label} was refused or removed, but exists`)
      }
    }
  }
}

/** An order that was cancelled must not exist. Without an answer to the cancellation, it can. */
function withoutCancelled ({ id, acknowledged, cancelled }: OrderEntry): Entry {
  const members = id === undefined ? {} : { id }
  if (cancelled === undefined) return { ...members, acknowledged: undefined }
  return { ...members, acknowledged: cancelled ? false : acknowledged }
}

interface StoredEvent { id: number, type: string, data: string }

interface OrderRow { id: number, petId: number, quantity: number, complete: boolean | number }

interface Row { id: number, quantity: number | null }

/**
 * Replays the events. They must be gapless, one for each change, and add up to the stock, which must never be negative.
 * The units counted must equal the units in stock and in orders.
 */
function replayEvents (
  events: StoredEvent[], last: number, pets: Row[], orders: OrderRow[], messages: number
): string[] {
  const violations: string[] = []
  const stock = new Map<number, number>()
  const counted = new Map<number, number>()
  const existing = new Set<number>()
  const complete = new Set<number>()
  const created = { pets: 0, messages: 0 }
  events.forEach(({ id, type, data }, i) => {
    if (id !== i + 1) violations.push(`event ${id} is at position ${i + 1}`)
    const { order, inventory, previousQuantity } = JSON.parse(data) as Data
    if (inventory !== undefined) {
      const before = stock.get(inventory.petId) ?? 0
      let now = before
      if (type === 'order.placed') {
        if (existing.has(order!.id)) violations.push(`order ${order!.id} is placed twice`)
        existing.add(order!.id)
        now -= order!.quantity
      } else if (type === 'order.cancelled') {
        if (!existing.delete(order!.id)) violations.push(`order ${order!.id} is cancelled, but did not exist`)
        now += order!.quantity
      } else if (type === 'order.completed') {
        if (complete.has(order!.id)) violations.push(`order ${order!.id} is completed twice`)
        complete.add(order!.id)
      } else if (type === 'inventory.counted') {
        if (previousQuantity !== before) {
          violations.push(`event ${id} counts from ${previousQuantity}, but the stock was ${before}`)
        }
        const change = inventory.quantity - previousQuantity!
        counted.set(inventory.petId, (counted.get(inventory.petId) ?? 0) + change)
        now = inventory.quantity
      }
      if (now !== inventory.quantity) {
        const { petId, quantity } = inventory
        violations.push(`event ${id} (${type}) reports ${quantity} units of pet ${petId}, not ${now}`)
      }
      if (now < 0) violations.push(`the stock of pet ${inventory.petId} was ${now}`)
      stock.set(inventory.petId, now)
    }
    if (type === 'pet.created') created.pets++
    if (type === 'message.created') created.messages++
  })
  if (last !== events.length) violations.push(`the account counts ${last} events and has ${events.length}`)
  if (created.pets !== pets.length) violations.push(`${created.pets} events for ${pets.length} pets`)
  if (created.messages !== messages) violations.push(`${created.messages} events for ${messages} messages`)
  if (existing.size !== orders.length) {
    violations.push(`${existing.size} orders by the events, ${orders.length} in the table`)
  }
  const completeRows = orders.filter((order) => Boolean(order.complete)).length
  if (complete.size !== completeRows) {
    violations.push(`${complete.size} completions by the events, ${completeRows} in the table`)
  }
  for (const { id, quantity } of pets) {
    const ordered = orders.filter(({ petId }) => petId === id).reduce((sum, order) => sum + order.quantity, 0)
    if ((stock.get(id) ?? 0) !== (quantity ?? 0)) {
      violations.push(`the stock of pet ${id} is ${quantity}, but ${stock.get(id)} by the events`)
    }
    if ((counted.get(id) ?? 0) !== (quantity ?? 0) + ordered) {
      violations.push(
        `of pet ${id}, ${counted.get(id)} units were counted, but ${quantity} are in stock and ${ordered} in orders`)
    }
  }
  return violations
}

interface Data {
  order?: { id: number, quantity: number }
  inventory?: { petId: number, quantity: number }
  previousQuantity?: number
}

async function query<Row> ({ prisma }: Database, sql: string): Promise<Row[]> {
  const found = await prisma.$queryRawUnsafe<Array<Record<string, unknown>>>(sql)
  return found.map((row) => {
    const members = Object.entries(row).map(([name, value]) =>
      [name, typeof value === 'bigint' ? Number(value) : value] as const)
    return Object.fromEntries(members) as Row
  })
}

/** Repeats acknowledged writes with their keys. Each must get the first answer, marked as a replay. */
export async function repeatWrites ({ ledger, client }: Store, report: Report, sample: number): Promise<void> {
  const latest = [...ledger.answers.values()].slice(-sample)
  await Promise.all(latest.map(async ({ write, reply }) => {
    const again = await client.send({ ...write, headers: { 'idempotency-key': write.key } })
    // The service can be down at this moment. Then a missing answer or a 503 is no violation.
    if (again.status === 0 || again.status === 503) return
    const same = again.status === reply.status && again.text === reply.text &&
      again.headers.etag === reply.headers.etag && again.headers.location === reply.headers.location
    const name = `${write.method} ${write.path}`
    if (!same) {
      report.violations.push(
        `${name} was answered ${reply.status} ${reply.text}, and its repetition ${again.status} ${again.text}`)
    } else if (again.headers['idempotency-replayed'] !== 'true') {
      report.violations.push(`${name} was executed again`)
    }
  }))
}
