import pg from 'pg'
import { base36, eventSql, responseSql } from './postgresql-sql.ts'
import { stepsOf } from './postgresql-steps.ts'
import { refusalOfOrder, unchanged, unknownCategory } from './refusals.ts'
import { randomText } from './sqlite.ts'
import type { Idempotency, Key, Message, Order, Pet, Store, StoredPet } from './store.ts'

/** The number of connections, petstore's default. */
const POOL = 10

/** Parses 64-bit integers as numbers: none here is above 2^53. */
pg.types.setTypeParser(pg.types.builtins.INT8, Number)

/**
 * node-postgres by hand: a pool, every statement named (parsed and planned once a connection), and each
 * write one statement, which is one round trip and one transaction.
 */
export function openPostgresql (url: string): Store {
  const pool = new pg.Pool({ connectionString: url, max: POOL })
  const steps = stepsOf(pool)

  const statement = <Row extends pg.QueryResultRow> (name: string, text: string) =>
    async (...values: unknown[]): Promise<Row[]> => (await pool.query<Row>({ name, text, values })).rows

  /** Prepares a write in two forms: without an Idempotency-Key, and with one, which is its last two parameters. */
  const writes = <Row extends pg.QueryResultRow> (name: string, text: (isKeyed: boolean) => string) => {
    const plain = statement<Row>(name, text(false))
    const keyed = statement<Row>(`${name}, keyed`, text(true))
    return async (account: number, values: unknown[], idempotency: Idempotency | undefined): Promise<Row[]> => {
      const now = new Date().toISOString()
      if (idempotency === undefined) return await plain(account, now, ...values)
      return await keyed(account, now, ...values, idempotency.key, idempotency.fingerprint)
    }
  }

  const keyByHash = statement<Key>(
    'key',
    `
    SELECT account_id AS account, id AS key, read_only AS "readOnly", to_json(expires_at) #>> '{}' AS "expiresAt", to_json(last_used_at) #>> '{}' AS "lastUsedAt"
    FROM api_keys WHERE hash = $1`
  )
  const keyUsed = statement('key used', 'UPDATE api_keys SET last_used_at = $1 WHERE id = $2')

  const petById = statement<StoredPet>('pet', `
    SELECT id, name, category_id AS "categoryId", status, version FROM pets WHERE id = $1 AND account_id = $2`)
  const pets = statement<Pet>(
    'pets',
    `
    SELECT id, name, category_id AS "categoryId", status FROM pets WHERE account_id = $1 AND id > $2 ORDER BY id LIMIT $3`
  )
  // The order is that of the whole index, so that the planner chooses it.
  const petsOfStatus = statement<Pet>(
    'pets of status',
    `
    SELECT id, name, category_id AS "categoryId", status FROM pets
    WHERE (account_id, status, id) > ($1, $2, $3) AND (account_id, status) <= ($1, $2) ORDER BY account_id, status, id LIMIT $4`
  )

  // A statement that changes several tables: in a transaction of several, the account's counter, which
  // every write of the account must pass, would stay locked for as many round trips.
  const createPet = writes<{ id: number }>('create pet', (isKeyed) => {
    const record = `'{"id":' || pet.id || ',"name":' || to_json(pet.name)::text || ',"categoryId":' ||
      pet.category_id || ',"status":"' || pet.status || '"}'`
    return `
    WITH pet AS (
      INSERT INTO pets (account_id, name, category_id, status)
      SELECT c.account_id, $3::text, c.id, $5::pet_status FROM categories c
      WHERE c.id = $4::bigint AND c.account_id = $1::bigint FOR KEY SHARE
      RETURNING id, name, category_id, status
    ), ${eventSql({ source: 'pet', type: 'pet.created', time: '$2', data: `'{"pet":' || ${record} || '}'` })}
    ${isKeyed ? responseSql('pet', '$2', ['$6', '$7'], record) : ''}
    SELECT id FROM pet`
  })

  // The stock is locked, so that no order changes it before the event has its number.
  const renamePet = statement<StoredPet>('rename pet', `
    WITH stock AS (
      SELECT quantity FROM inventory_items WHERE pet_id = $3::bigint AND account_id = $1::bigint FOR SHARE
    ), pet AS (
      UPDATE pets SET name = $4::text, version = version + 1
      WHERE id = $3::bigint AND account_id = $1::bigint AND name <> $4::text
        AND ($5::bigint[] IS NULL OR version = ANY ($5::bigint[]))
      RETURNING id, name, category_id, status, version
    ), ${eventSql({
      source: 'pet',
      type: 'pet.updated',
      time: '$2',
      data: `'{"pet":{"id":' || pet.id || ',"name":' || to_json(pet.name)::text || ',"categoryId":' ||
        pet.category_id || ',"status":"' || pet.status || '"}' || coalesce(',"inventory":{"petId":' || pet.id ||
        ',"quantity":' || stock.quantity || ',"status":"' || pet.status || '"}', '') || '}'`,
      from: 'LEFT JOIN stock ON true'
    })}
    SELECT id, name, category_id AS "categoryId", status, version FROM pet`)

  const placeOrder = writes<{ id: number }>('place order', (isKeyed) => {
    const record = `'{"id":' || placed.id || ',"petId":' || $3::bigint ||
      ',"quantity":' || $4::bigint || ',"complete":false}'`
    const data = `'{"order":' || ${record} || ',"inventory":{"petId":' || $3::bigint || ',"quantity":' || taken.left ||
      ',"status":"available"}}'`
    return `
    WITH taken AS (
      UPDATE inventory_items s SET quantity = s.quantity - $4::bigint, version = s.version + 1 FROM pets p
      WHERE s.pet_id = $3::bigint AND s.account_id = $1::bigint AND s.quantity > $4::bigint AND p.id = s.pet_id AND p.status = 'available'
      RETURNING s.quantity AS left
    ), placed AS (
      INSERT INTO orders (account_id, pet_id, quantity) SELECT $1::bigint, $3::bigint, $4::bigint FROM taken RETURNING id
    ), ${eventSql({ source: 'placed', type: 'order.placed', time: '$2', data, from: ', taken' })}
    ${isKeyed ? responseSql('placed', '$2', ['$5', '$6'], record) : ''}
    SELECT id FROM placed`
  })

  const stock = statement<{ status: string, quantity: number | null }>('stock', `
    SELECT p.status, s.quantity FROM pets p LEFT JOIN inventory_items s ON s.pet_id = p.id
    WHERE p.id = $1 AND p.account_id = $2`)

  // The order is locked first, so that no other transaction cancels it as well.
  const cancelOrder = statement<{ id: number }>('cancel order', `
    WITH found AS (
      SELECT id, pet_id, quantity FROM orders
      WHERE id = $3::bigint AND account_id = $1::bigint AND NOT complete FOR UPDATE
    ), returned AS (
      UPDATE inventory_items s SET quantity = s.quantity + found.quantity, version = s.version + 1
      FROM found, pets p WHERE s.pet_id = found.pet_id AND p.id = found.pet_id AND s.quantity > 0
      RETURNING found.id, found.pet_id, found.quantity, s.quantity AS left, p.status
    ), gone AS (
      DELETE FROM orders USING returned WHERE orders.id = returned.id
    ), ${eventSql({
      source: 'returned',
      type: 'order.cancelled',
      time: '$2',
      data: `'{"order":{"id":' || returned.id || ',"petId":' || returned.pet_id || ',"quantity":' ||
        returned.quantity || ',"complete":false},"inventory":{"petId":' || returned.pet_id || ',"quantity":' ||
        returned.left || ',"status":"' || returned.status || '"}}'`
    })}
    SELECT id FROM returned`)

  const createMessage = statement<{ id: string }>(
    'create message',
    `
    WITH next AS (
      SELECT nextval('messages_position_seq') AS position
    ), made AS (
      INSERT INTO messages (position, id, account_id, message, created_at)
      SELECT position, 'msg_' || ${base36('position')} || $2, $1::bigint, $3::text, $4::timestamp FROM next RETURNING id, message
    ), ${eventSql({
      source: 'made',
      type: 'message.created',
      time: '$4',
      data: `'{"message":{"id":"' || made.id || '","message":' || to_json(made.message)::text ||
        ',"status":"queued","createdAt":"' || $5::text || '"}}'`
    })}
    SELECT id FROM made`
  )

  // One statement delivers the messages of all accounts, and numbers the events of each from its counter.
  const settleMessages = statement(
    'settle messages',
    `
    WITH settled AS (
      UPDATE messages SET status = 'delivered', version = version + 1
      WHERE position IN (SELECT position FROM messages WHERE status = 'queued' AND waiting = 0 ORDER BY position LIMIT $1 FOR UPDATE SKIP LOCKED)
      RETURNING position, account_id, id, message, to_char(created_at, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS created_at
    ), counted AS (
      UPDATE accounts a SET last_event_id = a.last_event_id + s.count
      FROM (SELECT account_id, count(*) AS count FROM settled GROUP BY account_id) s WHERE a.id = s.account_id
      RETURNING a.id, a.last_event_id - s.count AS before
    )
    INSERT INTO events (account_id, id, type, timestamp, data)
    SELECT s.account_id, counted.before + row_number() OVER (PARTITION BY s.account_id ORDER BY s.position), 'message.delivered', $2::timestamp,
      '{"message":{"id":"' || s.id || '","message":' || to_json(s.message)::text || ',"status":"delivered","createdAt":"' || s.created_at || '"}}'
    FROM settled s JOIN counted ON counted.id = s.account_id
    RETURNING id`
  )

  return {
    findKey: async (hash) => (await keyByHash(hash))[0],
    markKeyUsed: async (key, at) => await keyUsed(at, key),
    findPet: async (account, id) => (await petById(id, account))[0],
    listPets: async (account, after, limit, status) =>
      status === undefined ? await pets(account, after, limit) : await petsOfStatus(account, status, after, limit),
    createPet: async (account, { name, categoryId, status = 'available' }, idempotency) =>
      await steps.once<Pet>(account, idempotency, async () => {
        const [row] = await createPet(account, [name, categoryId, status], idempotency)
        return row === undefined ? unknownCategory : { id: row.id, name, categoryId, status }
      }),
    async renamePet (account, id, name, versions) {
      const [pet] = await renamePet(account, new Date().toISOString(), id, name, versions)
      return pet ?? unchanged((await petById(id, account))[0], versions)
    },
    placeOrder: async (account, { petId, quantity = 1, complete = false }, idempotency) =>
      await steps.once<Order>(account, idempotency, async () => {
        const [row] = complete ? [] : await placeOrder(account, [petId, quantity], idempotency)
        if (row !== undefined) return { id: row.id, petId, quantity, complete }
        const [pet] = await stock(petId, account)
        if (pet?.status !== 'available' || (pet.quantity ?? 0) < quantity) return refusalOfOrder(pet, quantity)
        return await steps.placeOrder(account, { petId, quantity, complete }, idempotency)
      }),
    async cancelOrder (account, id) {
      const [row] = await cancelOrder(account, new Date().toISOString(), id)
      return row === undefined ? await steps.cancelOrder(account, id) : undefined
    },
    async createMessage (account, message) {
      const createdAt = new Date().toISOString()
      const [row] = await createMessage(account, randomText(), message, createdAt, createdAt)
      return { id: row!.id, message, status: 'queued', createdAt } satisfies Message
    },
    settleMessages: async (limit) => (await settleMessages(limit, new Date().toISOString())).length,
    close: async () => {
      await pool.end()
    }
  }
}
