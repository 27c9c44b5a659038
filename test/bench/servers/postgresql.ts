import pg from 'pg'
import { randomText } from './sqlite.ts'
import {
  refusalOf,
  type Key,
  type Message,
  type Order,
  type Pet,
  type Refusal,
  type Store,
  type StoredPet
} from './store.ts'

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

  const statement = <Row extends pg.QueryResultRow> (name: string, text: string) =>
    async (...values: unknown[]): Promise<Row[]> => (await pool.query<Row>({ name, text, values })).rows

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
  const createPet = statement<{ id: number }>(
    'create pet',
    `
    WITH pet AS (
      INSERT INTO pets (account_id, name, category_id, status)
      SELECT c.account_id, $2::text, c.id, $4::pet_status FROM categories c WHERE c.id = $3::bigint AND c.account_id = $1::bigint FOR KEY SHARE
      RETURNING id, name, category_id, status
    ), ${counted('pet')}, event AS (
      ${event('pet.created', '$5', '\'{"pet":{"id":\' || pet.id || \',"name":\' || to_json(pet.name)::text || \',"categoryId":\' || pet.category_id || \',"status":"\' || pet.status || \'"}}\'')}
      FROM pet, counted
    )
    SELECT id FROM pet`
  )

  const placeOrder = statement<{ id: number }>(
    'place order',
    `
    WITH taken AS (
      UPDATE inventory_items s SET quantity = s.quantity - $3::bigint, version = s.version + 1 FROM pets p
      WHERE s.pet_id = $2::bigint AND s.account_id = $1::bigint AND s.quantity > $3::bigint AND p.id = s.pet_id AND p.status = 'available'
      RETURNING s.quantity AS left
    ), placed AS (
      INSERT INTO orders (account_id, pet_id, quantity) SELECT $1::bigint, $2::bigint, $3::bigint FROM taken RETURNING id
    ), ${counted('placed')}, event AS (
      ${event('order.placed', '$4', '\'{"order":{"id":\' || placed.id || \',"petId":\' || $2::bigint || \',"quantity":\' || $3::bigint || \',"complete":false},"inventory":{"petId":\' || $2::bigint || \',"quantity":\' || taken.left || \',"status":"available"}}\'')}
      FROM placed, taken, counted
    )
    SELECT id FROM placed`
  )

  const createMessage = statement<{ id: string }>(
    'create message',
    `
    WITH next AS (
      SELECT nextval('messages_position_seq') AS position
    ), made AS (
      INSERT INTO messages (position, id, account_id, message, created_at)
      SELECT position, 'msg_' || ${base36('position')} || $2, $1::bigint, $3::text, $4::timestamp FROM next RETURNING id, message
    ), ${counted('made')}, event AS (
      ${event('message.created', '$4', '\'{"message":{"id":"\' || made.id || \'","message":\' || to_json(made.message)::text || \',"status":"queued","createdAt":"\' || $5::text || \'"}}\'')}
      FROM made, counted
    )
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

  /** Places an order that is complete, takes the last unit or is refused. It is rare, so that it uses several steps. */
  async function placeRareOrder (
    account: number,
    petId: number,
    quantity: number,
    complete: boolean
  ): Promise<Order | Refusal> {
    const client = await pool.connect()
    try {
      await client.query('BEGIN')
      const {
        rows: [pet]
      } = await client.query<{ status: string, quantity: number | null }>(
        `
        SELECT p.status, s.quantity FROM pets p LEFT JOIN inventory_items s ON s.pet_id = p.id WHERE p.id = $1 AND p.account_id = $2 FOR NO KEY UPDATE OF p`,
        [petId, account]
      )
      if (pet?.status !== 'available' || (pet.quantity ?? 0) < quantity) {
        await client.query('ROLLBACK')
        return refusalOf(pet)
      }
      const now = new Date().toISOString()
      const {
        rows: [stock]
      } = await client.query<{ left: number }>(
        `
        UPDATE inventory_items SET quantity = quantity - $1, version = version + 1 WHERE pet_id = $2 RETURNING quantity AS left`,
        [quantity, petId]
      )
      const {
        rows: [placed]
      } = await client.query<{ id: number }>(
        `
        INSERT INTO orders (account_id, pet_id, quantity, complete) VALUES ($1, $2, $3, $4) RETURNING id`,
        [account, petId, quantity, complete]
      )
      const {
        rows: [moved]
      } =
        stock!.left > 0
          ? { rows: [] }
          : await client.query<Pet>(
              `
        UPDATE pets SET version = version + 1, status = CASE WHEN EXISTS (SELECT 1 FROM orders o WHERE o.pet_id = $1 AND NOT o.complete) THEN 'pending' ELSE 'sold' END::pet_status
        WHERE id = $1 RETURNING id, name, category_id AS "categoryId", status`,
              [petId]
          )
      const order = { id: placed!.id, petId, quantity, complete }
      const data = { order, inventory: { petId, quantity: stock!.left, status: moved?.status ?? 'available' } }
      await append(client, account, 'order.placed', now, data)
      if (complete) await append(client, account, 'order.completed', now, data)
      if (moved !== undefined) {
        await append(client, account, 'pet.updated', now, { pet: moved, inventory: data.inventory })
      }
      await client.query('COMMIT')
      return order
    } catch (error) {
      await client.query('ROLLBACK')
      throw error
    } finally {
      client.release()
    }
  }

  return {
    findKey: async (hash) => (await keyByHash(hash))[0],
    markKeyUsed: async (key, at) => await keyUsed(at, key),
    findPet: async (account, id) => (await petById(id, account))[0],
    listPets: async (account, after, limit, status) =>
      status === undefined ? await pets(account, after, limit) : await petsOfStatus(account, status, after, limit),
    async createPet (account, { name, categoryId, status = 'available' }) {
      const [row] = await createPet(account, name, categoryId, status, new Date().toISOString())
      return row === undefined ? 'unknown_category' : { id: row.id, name, categoryId, status }
    },
    async placeOrder (account, { petId, quantity = 1, complete = false }) {
      const [row] = complete ? [] : await placeOrder(account, petId, quantity, new Date().toISOString())
      return row === undefined
        ? await placeRareOrder(account, petId, quantity, complete)
        : { id: row.id, petId, quantity, complete }
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

/** Returns SQL for the next event number of the account, if `done` has a row. */
function counted (done: string): string {
  return `counted AS (UPDATE accounts SET last_event_id = last_event_id + 1 FROM ${done} WHERE accounts.id = $1::bigint RETURNING last_event_id)`
}

function event (type: string, time: string, data: string): string {
  return `INSERT INTO events (account_id, id, type, timestamp, data) SELECT $1::bigint, counted.last_event_id, '${type}', ${time}::timestamp, ${data}`
}

async function append (client: pg.PoolClient, account: number, type: string, now: string, data: object): Promise<void> {
  const {
    rows: [counter]
  } = await client.query<{ id: number }>(
    'UPDATE accounts SET last_event_id = last_event_id + 1 WHERE id = $1 RETURNING last_event_id AS id',
    [account]
  )
  await client.query('INSERT INTO events (account_id, id, type, timestamp, data) VALUES ($1, $2, $3, $4, $5)', [
    account,
    counter!.id,
    type,
    now,
    JSON.stringify(data)
  ])
}

/** Returns SQL for ten digits of base 36. */
function base36 (number: string): string {
  return Array.from(
    { length: 10 },
    (_, i) => `substr('0123456789abcdefghijklmnopqrstuvwxyz', (${number} / ${36 ** (9 - i)} % 36)::int + 1, 1)`
  ).join(' || ')
}
