import { randomBytes } from 'node:crypto'
import { openFile } from '../../../src/database/sqlite/driver.ts'
import { Refusal, refusalOfCancellation, refusalOfOrder, replayOf, unchanged, unknownCategory } from './refusals.ts'
import {
  DELIVERY_MS, hasWebhooks, RECORD_MS, type Idempotency, type Key, type Message, type NewPet, type Order, type Pet,
  type PetStatus, type Store, type StoredPet, type Written
} from './store.ts'

type Value = string | number | null

interface Statement<Values extends Value[], Row> {
  get: (...values: Values) => Row | undefined
  all: (...values: Values) => Row[]
  run: (...values: Values) => { lastInsertRowid: number | bigint }
}

/** Uses SQLite's driver by hand: one connection, every statement prepared once, one short transaction per write. */
export function openSqlite (file: string): Store {
  const database = openFile(file)
  for (const setting of [
    'journal_mode = WAL',
    'synchronous = FULL',
    'foreign_keys = ON',
    'cache_size = -16384',
    'journal_size_limit = 16777216'
  ]) { database.exec(`PRAGMA ${setting}`) }

  const prepare = <Values extends Value[], Row = never>(sql: string): Statement<Values, Row> =>
    database.prepare(sql) as unknown as Statement<Values, Row>

  /** Prepares a statement whose rows have one column. */
  const prepareValue = <Values extends Value[], Column>(sql: string): Pick<Statement<Values, Column>, 'get'> => {
    const statement = database.prepare(sql)
    statement.setReturnArrays(true)
    return { get: (...values) => (statement.get(...values) as [Column] | undefined)?.[0] }
  }

  const [begin, commit, rollback] = ['BEGIN IMMEDIATE', 'COMMIT', 'ROLLBACK'].map((sql) => prepare<[]>(sql))
  const inTransaction = <Inputs extends unknown[], Result>(work: (...inputs: Inputs) => Result) =>
    (...inputs: Inputs): Result => {
      begin!.run()
      try {
        const result = work(...inputs)
        commit!.run()
        return result
      } catch (error) {
        rollback!.run()
        throw error
      }
    }

  const keyByHash = prepare<[string], Omit<Key, 'readOnly'> & { readOnly: number }>(`
    SELECT account_id AS account, id AS key, read_only AS readOnly, expires_at AS expiresAt, last_used_at AS lastUsedAt FROM api_keys WHERE hash = ?`)
  const keyUsed = prepare<[string, number]>('UPDATE api_keys SET last_used_at = ? WHERE id = ?')

  const petById = prepare<[number, number], StoredPet>(`
    SELECT id, name, category_id AS categoryId, status, version FROM pets WHERE id = ? AND account_id = ?`)
  const pets = prepare<[number, number, number], Pet>(`
    SELECT id, name, category_id AS categoryId, status FROM pets WHERE account_id = ? AND id > ? ORDER BY id LIMIT ?`)
  const petsOfStatus = prepare<[number, PetStatus, number, number], Pet>(`
    SELECT id, name, category_id AS categoryId, status FROM pets WHERE account_id = ? AND status = ? AND id > ? ORDER BY id LIMIT ?`)

  const counter = prepareValue<[number], number>(
    'UPDATE accounts SET last_event_id = last_event_id + 1 WHERE id = ? RETURNING last_event_id'
  )
  const event = prepare<[number, number, string, string, string]>(
    'INSERT INTO events (account_id, id, type, timestamp, data) VALUES (?, ?, ?, ?, ?)'
  )
  const delivery = prepare<[number, string, string, number, string]>(`
    INSERT INTO deliveries (account_id, event_id, webhook_id, next_try_at, give_up_at)
    SELECT account_id, ?, id, ?, ? FROM webhooks WHERE account_id = ? AND enabled AND events LIKE '%"' || ? || '"%'`)
  const append = (account: number, type: string, now: string, data: object): void => {
    const id = counter.get(account)!
    event.run(account, id, type, now, JSON.stringify(data))
    if (hasWebhooks) delivery.run(id, now, later(now, DELIVERY_MS), account, type)
  }

  const response = prepare<[number, string, string], { fingerprint: string, record: string | null }>(
    'SELECT fingerprint, record FROM idempotency_records WHERE account_id = ? AND key = ? AND expires_at >= ?'
  )
  const saveResponse = prepare<[number, string, string, string, string, string]>(`
    INSERT OR REPLACE INTO idempotency_records (account_id, key, fingerprint, record, etag, created_at, expires_at)
    VALUES (?, ?, ?, ?, '"1"', ?, ?)`)
  const once = <Result extends object>(
    account: number, idempotency: Idempotency | undefined, work: (now: string) => Result | Refusal
  ): Written<Result> => {
    const now = new Date().toISOString()
    if (idempotency === undefined) return work(now)
    const { key, fingerprint } = idempotency
    const stored = response.get(account, key, now)
    if (stored !== undefined) return replayOf(stored, idempotency)
    const result = work(now)
    if (result instanceof Refusal) return result
    saveResponse.run(account, key, fingerprint, JSON.stringify(result), now, later(now, RECORD_MS))
    return result
  }

  const category = prepareValue<[number, number], number>('SELECT 1 FROM categories WHERE id = ? AND account_id = ?')
  const newPet = prepare<[number, string, number, PetStatus]>(
    'INSERT INTO pets (account_id, name, category_id, status) VALUES (?, ?, ?, ?)'
  )

  const takeStock = prepareValue<[number, number, number, number], number>(`
    UPDATE inventory_items SET quantity = quantity - ?, version = version + 1
    WHERE pet_id = ? AND account_id = ? AND quantity >= ? AND (SELECT status FROM pets WHERE id = pet_id) = 'available'
    RETURNING quantity`)
  const stock = prepare<[number, number], { status: string, quantity: number | null }>(`
    SELECT p.status, s.quantity FROM pets p LEFT JOIN inventory_items s ON s.pet_id = p.id WHERE p.id = ? AND p.account_id = ?`)
  const isOpen = prepareValue<[number], number>('SELECT 1 FROM orders WHERE pet_id = ? AND NOT complete LIMIT 1')
  const setStatus = prepare<[PetStatus, number], Pet>(`
    UPDATE pets SET status = ?, version = version + 1 WHERE id = ? RETURNING id, name, category_id AS categoryId, status`)
  const newOrder = prepare<[number, number, number, number]>(
    'INSERT INTO orders (account_id, pet_id, quantity, complete) VALUES (?, ?, ?, ?)'
  )

  const rename = prepare<[string, number, number, string, string | null], StoredPet & { quantity: number | null }>(`
    UPDATE pets SET name = ?, version = version + 1
    WHERE id = ? AND account_id = ? AND name <> ? AND version IN (SELECT value FROM json_each(coalesce(?, json_array(version))))
    RETURNING id, name, category_id AS categoryId, status, version,
      (SELECT quantity FROM inventory_items WHERE pet_id = pets.id) AS quantity`)

  const orderById = prepare<[number, number], Omit<Order, 'complete'> & { complete: number }>(`
    SELECT id, pet_id AS petId, quantity, complete FROM orders WHERE id = ? AND account_id = ?`)
  const deleteOrder = prepare<[number]>('DELETE FROM orders WHERE id = ?')
  const returnStock = prepare<[number, number], { quantity: number, status: PetStatus }>(`
    UPDATE inventory_items SET quantity = quantity + ?, version = version + 1 WHERE pet_id = ?
    RETURNING quantity, (SELECT status FROM pets WHERE id = pet_id) AS status`)

  const lastMessage = prepareValue<[], number>("SELECT seq FROM sqlite_sequence WHERE name = 'messages'")
  const newMessage = prepare<[number, string, number, string, string]>(`
    INSERT INTO messages (position, id, account_id, message, created_at) VALUES (?, ?, ?, ?, ?)`)

  const settled = prepare<[number], Message & { account: number, position: number }>(`
    UPDATE messages SET status = 'delivered', version = version + 1
    WHERE position IN (SELECT position FROM messages WHERE status = 'queued' AND waiting = 0 ORDER BY position LIMIT ?)
    RETURNING position, account_id AS account, id, message, status, substr(created_at, 1, 23) || 'Z' AS createdAt`)

  const createPet = inTransaction(
    (
      account: number,
      { name, categoryId, status = 'available' }: NewPet,
      idempotency: Idempotency | undefined
    ): Written<Pet> => once(account, idempotency, (now) => {
      if (category.get(categoryId, account) === undefined) return unknownCategory
      const id = Number(newPet.run(account, name, categoryId, status).lastInsertRowid)
      const pet = { id, name, categoryId, status }
      append(account, 'pet.created', now, { pet })
      return pet
    })
  )

  const renamePet = inTransaction(
    (account: number, id: number, name: string, versions: number[] | undefined): StoredPet | Refusal => {
      const renamed = rename.get(name, id, account, name, versions === undefined ? null : JSON.stringify(versions))
      if (renamed === undefined) return unchanged(petById.get(id, account), versions)
      const { version, quantity, ...pet } = renamed
      const inventory = quantity === null ? {} : { inventory: { petId: id, quantity, status: pet.status } }
      append(account, 'pet.updated', new Date().toISOString(), { pet, ...inventory })
      return { ...pet, version }
    }
  )

  const placeOrder = inTransaction(
    (
      account: number, petId: number, quantity: number, complete: boolean, idempotency: Idempotency | undefined
    ): Written<Order> => once(account, idempotency, (now) => {
      const left = takeStock.get(quantity, petId, account, quantity)
      if (left === undefined) return refusalOfOrder(stock.get(petId, account), quantity)
      const id = Number(newOrder.run(account, petId, quantity, complete ? 1 : 0).lastInsertRowid)
      const order = { id, petId, quantity, complete }
      const moved = left > 0 ? undefined : setStatus.get(isOpen.get(petId) === undefined ? 'sold' : 'pending', petId)
      const data = { order, inventory: { petId, quantity: left, status: moved?.status ?? 'available' } }
      append(account, 'order.placed', now, data)
      if (complete) append(account, 'order.completed', now, data)
      if (moved !== undefined) append(account, 'pet.updated', now, { pet: moved, inventory: data.inventory })
      return order
    })
  )

  const cancelOrder = inTransaction((account: number, id: number): Refusal | undefined => {
    const found = orderById.get(id, account)
    const refusal = refusalOfCancellation(found)
    if (refusal !== undefined) return refusal
    const order = { ...found!, complete: false }
    const { petId, quantity } = order
    const now = new Date().toISOString()
    deleteOrder.run(id)
    const stock = returnStock.get(quantity, petId)!
    const moved = stock.quantity > quantity ? undefined : setStatus.get('available', petId)
    const inventory = { petId, quantity: stock.quantity, status: moved?.status ?? stock.status }
    append(account, 'order.cancelled', now, { order, inventory })
    if (moved !== undefined) append(account, 'pet.updated', now, { pet: moved, inventory })
    return undefined
  })

  const createMessage = inTransaction((account: number, text: string): Message => {
    const createdAt = new Date().toISOString()
    const position = (lastMessage.get() ?? 0) + 1
    const message: Message = { id: messageId(position), message: text, status: 'queued', createdAt }
    newMessage.run(position, message.id, account, text, createdAt)
    append(account, 'message.created', createdAt, { message })
    return message
  })

  const settleMessages = inTransaction((limit: number): number => {
    const messages = settled.all(limit).sort((a, b) => a.position - b.position)
    const now = new Date().toISOString()
    for (const { account, id, message, status, createdAt } of messages) {
      append(account, 'message.delivered', now, { message: { id, message, status, createdAt } })
    }
    return messages.length
  })

  return {
    findKey (hash) {
      const key = keyByHash.get(hash)
      return key && { ...key, readOnly: key.readOnly === 1 }
    },
    markKeyUsed: (key, at) => keyUsed.run(at, key),
    findPet: (account, id) => petById.get(id, account),
    listPets: (account, after, limit, status) =>
      status === undefined ? pets.all(account, after, limit) : petsOfStatus.all(account, status, after, limit),
    createPet,
    renamePet,
    placeOrder: (account, { petId, quantity = 1, complete = false }, idempotency) =>
      placeOrder(account, petId, quantity, complete, idempotency),
    cancelOrder,
    createMessage: (account, text) => createMessage(account, text),
    settleMessages: (limit) => settleMessages(limit),
    close: () => database.close()
  }
}

/** Returns the time that is so many ms later. */
function later (time: string, ms: number): string {
  return new Date(Date.parse(time) + ms).toISOString()
}

/** Returns `msg_`, the position in ten digits of base 36, and 16 random digits. */
export function messageId (position: number): string {
  return `msg_${position.toString(36).padStart(10, '0')}${randomText()}`
}

export function randomText (): string {
  let text = ''
  for (const byte of randomBytes(16)) text += (byte % 36).toString(36)
  return text
}
