import type pg from 'pg'
import { DELETED_WEBHOOK, type Owner } from '../hot-paths.ts'

// Fills a database with one account that is far larger than the others. Foreign keys and triggers are off, so that it
// takes seconds.

/** The ids of rows that tests make by HTTP are smaller. */
const FIRST_SMALL_ACCOUNT = 1_000_000
const SMALL_ACCOUNTS = 20_000

/** Rows of each small account in each table. */
const ROWS = 1

/** Rows of the large account in each large table. */
const LARGE_ROWS = 20_000

/** Rows of an account to erase in each of its tables: two steps. */
const ERASED_ROWS = 600

/** Part of the rows, from and to numbers between 0 and 1. */
type Part = [from: number, to: number]

const series = (count: number, [from, to]: Part, alias: string): string =>
  `generate_series(${Math.round(count * from) + 1}, ${Math.round(count * to)}) ${alias}`

const SMALL = `${FIRST_SMALL_ACCOUNT} + i`

/** Inserts a part of the rows of the large account and of the small ones. */
export async function fillStore (client: pg.Client, owner: Owner, part: Part): Promise<void> {
  const small = series(SMALL_ACCOUNTS, part, 'i')
  const large = series(LARGE_ROWS, part, 'n')
  const { account, category, rareCategory, pet } = owner
  const run = async (sql: string): Promise<void> => { await client.query(sql) }
  await run('SET session_replication_role = replica')
  await run(`INSERT INTO accounts (id, name, created_at, last_event_id, clock_offset_seconds)
    SELECT ${SMALL}, 'a', now(), ${ROWS}, CASE WHEN i % 1000 = 1 THEN 60 ELSE 0 END FROM ${small}`)
  await run(`INSERT INTO api_keys (account_id, prefix, hash, created_at)
    SELECT ${SMALL}, 'p', md5('key ' || i), now() FROM ${small}`)
  await run(`INSERT INTO categories (id, account_id, name) SELECT ${SMALL}, ${SMALL}, 'c' FROM ${small}`)
  await run(withStock(`
    SELECT ${SMALL}, ${SMALL}, 'p', (ARRAY['available', 'pending', 'sold'])[1 + i % 3]::pet_status, i % 2 = 1
    FROM ${small}, generate_series(1, ${ROWS}) n`))
  await run(withStock(`
    SELECT ${account}, CASE WHEN n % 1000 = 1 THEN ${rareCategory} ELSE ${category} END, 'p',
      (CASE WHEN n % 800 = 7 THEN 'available' WHEN n % 4000 = 9 THEN 'pending' ELSE 'sold' END)::pet_status, n % 50 = 1
    FROM ${large}`))
  await run(`INSERT INTO orders (account_id, pet_id, quantity, complete)
    SELECT ${account}, ${pet}, 1, n % 800 <> 7 FROM ${series(10_000, part, 'n')}`)
  await run(`INSERT INTO messages (id, account_id, message, status, created_at)
    SELECT 'large' || n, ${account}, 'Hi', 'delivered'::message_status, now() FROM ${large}
    UNION ALL SELECT 'small' || i, ${SMALL}, 'Hi', 'delivered', now() FROM ${small}`)
  // The numbers first: the service writes events meanwhile.
  const count = Math.round(LARGE_ROWS * (part[1] - part[0]))
  const { rows: [numbered] } = await client.query<{ before: string }>(`
    UPDATE accounts SET last_event_id = last_event_id + ${count} WHERE id = ${account}
    RETURNING last_event_id - ${count} AS before`)
  await run(`INSERT INTO events (account_id, id, type, timestamp, data)
    SELECT ${account}, ${numbered!.before} + n, 'pet.created', now(), '{}' FROM generate_series(1, ${count}) n
    UNION ALL SELECT ${SMALL}, n, 'pet.created', now(), '{}' FROM ${small}, generate_series(1, ${ROWS}) n`)
  await run(`INSERT INTO idempotency_records (account_id, key, fingerprint, created_at, expires_at)
    SELECT ${account}, 'k' || n, 'f', now(), now() + interval '1 day' FROM ${large}
    UNION ALL SELECT ${SMALL}, 'k', 'f', now(), now() + CASE WHEN i % 5 = 0 THEN '-1 day' ELSE '1 day' END::interval
    FROM ${small}`)
  await run(`INSERT INTO faults (account_id, operation, effect, after, times, hits, created_at)
    SELECT ${account}, 'webhook', '{"type":"reset"}', 0, 1, 1, now() FROM ${series(990, part, 'n')}
    UNION ALL SELECT ${SMALL}, 'webhook', '{"type":"reset"}', 0, 1, 1 - (i % 1000 = 1)::int, now() FROM ${small}`)
  await run(`INSERT INTO lab_states (account_id, changed_at) SELECT ${SMALL}, now() - interval '1 day' FROM ${small}`)
  await run(`INSERT INTO webhooks (id, account_id, url, events, enabled, secret, created_at)
    SELECT ${SMALL}, ${SMALL}, 'https://example.com/', '["pet.created"]', true, 's', now() FROM ${small}`)
  await fillDeliveries(client, owner, part)
}

/** Inserts pets with an order each, and with a count where `counted` says so. */
function withStock (pets: string): string {
  return `
    WITH pet AS (
      INSERT INTO pets (account_id, category_id, name, status, counted) ${pets} RETURNING id, account_id, counted
    ), item AS (
      INSERT INTO inventory_items (pet_id, account_id, quantity) SELECT id, account_id, 5 FROM pet WHERE counted
    )
    INSERT INTO orders (account_id, pet_id, quantity, complete) SELECT account_id, id, 1, id % 800 <> 7 FROM pet`
}

/** Most deliveries are finished. Many of one webhook wait, also of one that was deleted, and of a small store. */
async function fillDeliveries (
  client: pg.Client, { account, webhook, busy }: Owner, part: Part
): Promise<void> {
  const columns = 'account_id, webhook_id, event_id, state, next_try_at, give_up_at, settled_at'
  const soon = "now(), now() + interval '1 day'"
  await client.query(`INSERT INTO deliveries (${columns})
    SELECT ${account}, ${webhook}, n, 'waiting'::delivery_state, ${soon}, NULL::timestamp FROM ${series(LARGE_ROWS, part, 'n')}
    UNION ALL SELECT ${account}, ${DELETED_WEBHOOK}, n, 'waiting'::delivery_state, ${soon}, NULL FROM ${series(4_000, part, 'n')}
    UNION ALL SELECT ${busy.account}, ${busy.account}, n, 'waiting', now() + interval '1 day', now() + interval '1 day', NULL
    FROM ${series(LARGE_ROWS, part, 'n')}
    UNION ALL SELECT ${account}, ${webhook}, n, 'delivered', ${soon}, now() - interval '1 day'
    FROM ${series(LARGE_ROWS, part, 'n')}
    UNION ALL SELECT ${SMALL}, ${SMALL}, n, 'delivered', ${soon}, now() FROM ${series(SMALL_ACCOUNTS, part, 'i')},
      generate_series(1, ${ROWS}) n`)
}

/** Inserts accounts to erase. @returns their ids */
export async function fillErasedAccounts (client: pg.Client, count: number, rows = ERASED_ROWS): Promise<number[]> {
  const accounts = Array.from({ length: count }, (_, i) => 800_000 + i)
  const each = `unnest(ARRAY[${accounts.join(', ')}]::bigint[]) account, generate_series(1, ${rows}) n`
  const run = async (sql: string): Promise<void> => { await client.query(sql) }
  await run('SET session_replication_role = replica')
  await run(`INSERT INTO accounts (id, name, created_at, last_event_id)
    SELECT account, 'a', now(), ${rows} FROM unnest(ARRAY[${accounts.join(', ')}]::bigint[]) account`)
  await run(`INSERT INTO categories (id, account_id, name) SELECT account, account, 'c' FROM ${each} WHERE n = 1`)
  await run(withStock(`SELECT account, account, 'p', 'available'::pet_status, true FROM ${each}`))
  await run(`INSERT INTO events (account_id, id, type, timestamp, data)
    SELECT account, n, 'pet.created', now(), '{}' FROM ${each}`)
  await run(`INSERT INTO idempotency_records (account_id, key, fingerprint, created_at, expires_at)
    SELECT account, 'k' || n, 'f', now(), now() + interval '1 day' FROM ${each}`)
  await run(`INSERT INTO messages (id, account_id, message, status, created_at)
    SELECT 'erased' || account || ' ' || n, account, 'Hi', 'delivered'::message_status, now() FROM ${each}`)
  await run(`INSERT INTO deliveries (account_id, webhook_id, event_id, next_try_at, give_up_at, state, settled_at)
    SELECT account, account, n, now(), now(), 'delivered', now() FROM ${each}`)
  await run(`INSERT INTO snapshot_rows (account_id, snapshot_id, kind, row_id, data)
    SELECT account, 1, 'pets', n, '{}' FROM ${each}`)
  return accounts
}
