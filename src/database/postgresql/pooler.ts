import pg from 'pg'
import { OperationalError } from '../../operational-error.ts'
import { connectionOf, SERVER_TIMEOUT_MS } from './connection-url.ts'

/** A pooler can give both connections servers that no other has used. A second attempt is unlikely to. */
const ATTEMPTS = 3

/**
 * Detects a pooler in transaction mode, which gives each transaction of a connection another server: prepared
 * statements, settings and LISTEN of the service would be lost, or reach other clients.
 *
 * @param first a new connection to `url`
 * @throws OperationalError for such a pooler
 */
export async function refuseTransactionPooler (first: pg.Client, url: string): Promise<void> {
  // A pooler invents the process id that it tells its clients.
  if (await serverOf(first) === (first as unknown as { processID: number }).processID) return
  const second = new pg.Client({
    ...connectionOf(url), connectionTimeoutMillis: SERVER_TIMEOUT_MS, query_timeout: SERVER_TIMEOUT_MS
  })
  try {
    await second.connect()
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const before = await serverOf(first)
      await second.query('BEGIN')
      const other = await serverOf(second)
      const after = await serverOf(first)
      await second.query('ROLLBACK')
      // One has the server of the other, or loses its own, during a transaction.
      if (other === before || after !== before) {
        throw new OperationalError(
          'DATABASE_URL leads to a pooler in transaction mode, such as PgBouncer with pool_mode=transaction. ' +
          'Connect to PostgreSQL itself, or set the pooler to session mode.')
      }
    }
  } finally {
    await second.end().catch(() => {})
  }
}

/** Returns the id of the server's process that answers a connection. */
async function serverOf (client: pg.Client): Promise<number> {
  const { rows: [row] } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
  return row!.pid
}
