import type pg from 'pg'
import { Refusal, refusalOfCancellation, refusalOfOrder, replayOf } from './refusals.ts'
import { hasWebhooks, type Idempotency, type Order, type Pet, type Replay, type Store, type Written } from './store.ts'

/** Writes that are rare, so that they use several statements. */
export interface Steps {
  /** Places an order that is complete or takes the last unit. */
  placeOrder: (account: number, order: Omit<Order, 'id'>, idempotency?: Idempotency) => Promise<Written<Order>>
  /** Cancels an order whose pet has no stock, or refuses that. */
  cancelOrder: Store['cancelOrder']
  /** Runs a write. If it fails or is refused, and its key was used before, the stored response is the result. */
  once: <T>(
    account: number, idempotency: Idempotency | undefined, write: () => Promise<Written<T>>
  ) => Promise<Written<T>>
}

const PET = 'id, name, category_id AS "categoryId", status'

export function stepsOf (pool: pg.Pool): Steps {
  /** A refusal rolls back. */
  async function inTransaction<Result> (work: (client: pg.PoolClient) => Promise<Result>): Promise<Result> {
    const client = await pool.connect()
    try {
      await client.query('BEGIN')
      const result = await work(client)
      await client.query(result instanceof Refusal ? 'ROLLBACK' : 'COMMIT')
      return result
    } catch (error) {
      await client.query('ROLLBACK')
      throw error
    } finally {
      client.release()
    }
  }

  async function findResponse<T> (
    account: number, idempotency: Idempotency
  ): Promise<Replay<T> | Refusal | undefined> {
    const { rows: [stored] } = await pool.query<{ fingerprint: string, record: string | null }>({
      name: 'response',
      text: `
        SELECT fingerprint, record FROM idempotency_records
        WHERE account_id = $1 AND key = $2 AND expires_at >= $3`,
      values: [account, idempotency.key, new Date().toISOString()]
    })
    return stored && replayOf(stored, idempotency)
  }

  return {
    async once<T> (account: number, idempotency: Idempotency | undefined, write: () => Promise<Written<T>>) {
      try {
        const result = await write()
        if (idempotency === undefined || !(result instanceof Refusal)) return result
        return await findResponse<T>(account, idempotency) ?? result
      } catch (error) {
        const isUsed = (error as pg.DatabaseError).constraint === 'idempotency_records_pkey'
        if (idempotency === undefined || !isUsed) throw error
        const stored = await findResponse<T>(account, idempotency)
        if (stored !== undefined) return stored
        // It has expired.
        await pool.query('DELETE FROM idempotency_records WHERE account_id = $1 AND key = $2 AND expires_at < $3',
          [account, idempotency.key, new Date().toISOString()])
        return await write()
      }
    },
    placeOrder: async (account, { petId, quantity, complete }, idempotency) => await inTransaction(async (client) => {
      const { rows: [pet] } = await client.query<{ status: string, quantity: number | null }>(`
        SELECT p.status, s.quantity FROM pets p LEFT JOIN inventory_items s ON s.pet_id = p.id
        WHERE p.id = $1 AND p.account_id = $2 FOR NO KEY UPDATE OF p`, [petId, account])
      if (pet?.status !== 'available' || (pet.quantity ?? 0) < quantity) return refusalOfOrder(pet, quantity)
      const now = new Date().toISOString()
      const { rows: [stock] } = await client.query<{ left: number }>(`
        UPDATE inventory_items SET quantity = quantity - $1, version = version + 1 WHERE pet_id = $2
        RETURNING quantity AS left`, [quantity, petId])
      const { rows: [placed] } = await client.query<{ id: number }>(`
        INSERT INTO orders (account_id, pet_id, quantity, complete) VALUES ($1, $2, $3, $4) RETURNING id`,
      [account, petId, quantity, complete])
      const { rows: [moved] } = stock!.left > 0
        ? { rows: [] }
        : await client.query<Pet>(`
          UPDATE pets SET version = version + 1, status = CASE WHEN EXISTS (
            SELECT 1 FROM orders o WHERE o.pet_id = $1 AND NOT o.complete) THEN 'pending' ELSE 'sold' END::pet_status
          WHERE id = $1 RETURNING ${PET}`, [petId])
      const order = { id: placed!.id, petId, quantity, complete }
      const data = { order, inventory: { petId, quantity: stock!.left, status: moved?.status ?? 'available' } }
      await append(client, account, 'order.placed', now, data)
      if (complete) await append(client, account, 'order.completed', now, data)
      if (moved !== undefined) {
        await append(client, account, 'pet.updated', now, { pet: moved, inventory: data.inventory })
      }
      if (idempotency !== undefined) {
        await client.query(`
          INSERT INTO idempotency_records (account_id, key, fingerprint, record, etag, created_at, expires_at)
          VALUES ($1, $2, $3, $4, '"1"', $5::timestamp, $5::timestamp + interval '1 day')`,
        [account, idempotency.key, idempotency.fingerprint, JSON.stringify(order), now])
      }
      return order
    }),
    cancelOrder: async (account, id) => await inTransaction(async (client) => {
      const { rows: [order] } = await client.query<Order>(`
        SELECT id, pet_id AS "petId", quantity, complete FROM orders WHERE id = $1 AND account_id = $2 FOR UPDATE`,
      [id, account])
      const refusal = refusalOfCancellation(order)
      if (refusal !== undefined) return refusal
      const { petId, quantity } = order!
      const now = new Date().toISOString()
      await client.query('DELETE FROM orders WHERE id = $1', [id])
      const { rows: [stock] } = await client.query<{ left: number }>(`
        UPDATE inventory_items SET quantity = quantity + $1, version = version + 1 WHERE pet_id = $2
        RETURNING quantity AS left`, [quantity, petId])
      const isMoved = stock!.left === quantity
      const { rows: [pet] } = await client.query<Pet>(isMoved
        ? `UPDATE pets SET status = 'available', version = version + 1 WHERE id = $1 RETURNING ${PET}`
        : `SELECT ${PET} FROM pets WHERE id = $1`, [petId])
      const inventory = { petId, quantity: stock!.left, status: pet!.status }
      await append(client, account, 'order.cancelled', now, { order, inventory })
      if (isMoved) await append(client, account, 'pet.updated', now, { pet, inventory })
      return undefined
    })
  }
}

async function append (client: pg.PoolClient, account: number, type: string, now: string, data: object): Promise<void> {
  const { rows: [counter] } = await client.query<{ id: number }>(
    'UPDATE accounts SET last_event_id = last_event_id + 1 WHERE id = $1 RETURNING last_event_id AS id', [account])
  await client.query('INSERT INTO events (account_id, id, type, timestamp, data) VALUES ($1, $2, $3, $4, $5)',
    [account, counter!.id, type, now, JSON.stringify(data)])
  if (!hasWebhooks) return
  await client.query(`
    INSERT INTO deliveries (account_id, event_id, webhook_id, next_try_at, give_up_at)
    SELECT $1, $2, id, $3::timestamp, $3::timestamp + interval '1 day'
    FROM webhooks WHERE account_id = $1 AND enabled AND events LIKE '%"' || $4::text || '"%'`,
  [account, counter!.id, now, type])
}
