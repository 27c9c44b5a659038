import { randomBytes } from 'node:crypto'
import Sqlite from 'better-sqlite3'
import {
  refusalOf,
  type Key,
  type Message,
  type Order,
  type Pet,
  type PetStatus,
  type Refusal,
  type Store,
  type StoredPet
} from './store.ts'

/** Uses better-sqlite3 by hand: one connection, every statement prepared once, one short transaction per write. */
export function openSqlite (file: string): Store {
  const database = new Sqlite(file)
  for (const setting of [
    'journal_mode = WAL',
    'synchronous = FULL',
    'foreign_keys = ON',
    'cache_size = -16384',
    'journal_size_limit = 16777216'
  ]) { database.pragma(setting) }

  const keyByHash = database.prepare<[string], Omit<Key, 'readOnly'> & { readOnly: number }>(`
    SELECT account_id AS account, id AS key, read_only AS readOnly, expires_at AS expiresAt, last_used_at AS lastUsedAt FROM api_keys WHERE hash = ?`)
  const keyUsed = database.prepare<[string, number]>('UPDATE api_keys SET last_used_at = ? WHERE id = ?')

  const petById = database.prepare<[number, number], StoredPet>(`
    SELECT id, name, category_id AS categoryId, status, version FROM pets WHERE id = ? AND account_id = ?`)
  const pets = database.prepare<[number, number, number], Pet>(`
    SELECT id, name, category_id AS categoryId, status FROM pets WHERE account_id = ? AND id > ? ORDER BY id LIMIT ?`)
  const petsOfStatus = database.prepare<[number, PetStatus, number, number], Pet>(`
    SELECT id, name, category_id AS categoryId, status FROM pets WHERE account_id = ? AND status = ? AND id > ? ORDER BY id LIMIT ?`)

  const counter = database
    .prepare<[number], number>(
      'UPDATE accounts SET last_event_id = last_event_id + 1 WHERE id = ? RETURNING last_event_id'
    )
    .pluck()
  const event = database.prepare<[number, number, string, string, string]>(
    'INSERT INTO events (account_id, id, type, timestamp, data) VALUES (?, ?, ?, ?, ?)'
  )
  const append = (account: number, type: string, now: string, data: object): void => {
    event.run(account, counter.get(account)!, type, now, JSON.stringify(data))
  }

  const category = database
    .prepare<[number, number], number>('SELECT 1 FROM categories WHERE id = ? AND account_id = ?')
    .pluck()
  const newPet = database.prepare<[number, string, number, PetStatus]>(
    'INSERT INTO pets (account_id, name, category_id, status) VALUES (?, ?, ?, ?)'
  )

  const takeStock = database.prepare<[number, number, number, number], number>(`
    UPDATE inventory_items SET quantity = quantity - ?, version = version + 1
    WHERE pet_id = ? AND account_id = ? AND quantity >= ? AND (SELECT status FROM pets WHERE id = pet_id) = 'available'
    RETURNING quantity`).pluck()
  const stock = database.prepare<[number, number], { status: string, quantity: number | null }>(`
    SELECT p.status, s.quantity FROM pets p LEFT JOIN inventory_items s ON s.pet_id = p.id WHERE p.id = ? AND p.account_id = ?`)
  const isOpen = database
    .prepare<[number], number>('SELECT 1 FROM orders WHERE pet_id = ? AND NOT complete LIMIT 1')
    .pluck()
  const setStatus = database.prepare<[PetStatus, number], Pet>(`
    UPDATE pets SET status = ?, version = version + 1 WHERE id = ? RETURNING id, name, category_id AS categoryId, status`)
  const newOrder = database.prepare<[number, number, number, number]>(
    'INSERT INTO orders (account_id, pet_id, quantity, complete) VALUES (?, ?, ?, ?)'
  )

  const lastMessage = database.prepare<[], number>("SELECT seq FROM sqlite_sequence WHERE name = 'messages'").pluck()
  const newMessage = database.prepare<[number, string, number, string, string]>(`
    INSERT INTO messages (position, id, account_id, message, created_at) VALUES (?, ?, ?, ?, ?)`)

  const settled = database.prepare<[number], Message & { account: number, position: number }>(`
    UPDATE messages SET status = 'delivered', version = version + 1
    WHERE position IN (SELECT position FROM messages WHERE status = 'queued' AND waiting = 0 ORDER BY position LIMIT ?)
    RETURNING position, account_id AS account, id, message, status, substr(created_at, 1, 23) || 'Z' AS createdAt`)

  const createPet = database.transaction(
    (
      account: number,
      { name, categoryId, status = 'available' }: Omit<Pet, 'id' | 'status'> & { status?: PetStatus }
    ): Pet | Refusal => {
      if (category.get(categoryId, account) === undefined) return 'unknown_category'
      const pet = {
        id: Number(newPet.run(account, name, categoryId, status).lastInsertRowid),
        name,
        categoryId,
        status
      }
      append(account, 'pet.created', new Date().toISOString(), { pet })
      return pet
    }
  )

  const placeOrder = database.transaction(
    (account: number, petId: number, quantity: number, complete: boolean): Order | Refusal => {
      const left = takeStock.get(quantity, petId, account, quantity)
      if (left === undefined) return refusalOf(stock.get(petId, account))
      const now = new Date().toISOString()
      const id = Number(newOrder.run(account, petId, quantity, complete ? 1 : 0).lastInsertRowid)
      const order = { id, petId, quantity, complete }
      const moved = left > 0 ? undefined : setStatus.get(isOpen.get(petId) === undefined ? 'sold' : 'pending', petId)
      const data = { order, inventory: { petId, quantity: left, status: moved?.status ?? 'available' } }
      append(account, 'order.placed', now, data)
      if (complete) append(account, 'order.completed', now, data)
      if (moved !== undefined) append(account, 'pet.updated', now, { pet: moved, inventory: data.inventory })
      return order
    }
  )

  const createMessage = database.transaction((account: number, text: string): Message => {
    const createdAt = new Date().toISOString()
    const position = (lastMessage.get() ?? 0) + 1
    const message: Message = { id: messageId(position), message: text, status: 'queued', createdAt }
    newMessage.run(position, message.id, account, text, createdAt)
    append(account, 'message.created', createdAt, { message })
    return message
  })

  const settleMessages = database.transaction((limit: number): number => {
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
    createPet: (account, pet) => createPet.immediate(account, pet),
    placeOrder: (account, { petId, quantity = 1, complete = false }) =>
      placeOrder.immediate(account, petId, quantity, complete),
    createMessage: (account, text) => createMessage.immediate(account, text),
    settleMessages: (limit) => settleMessages.immediate(limit),
    close: () => database.close()
  }
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
