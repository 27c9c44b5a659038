import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'

/**
 * A group waits no longer for a row that another process has locked: the process may be suspended. Then only the write
 * that needs the row is refused.
 */
const LOCK_TIMEOUT_MS = 1_000

/**
 * Every statement looks rows up by their keys or walks an index, whatever the planner estimates of the size of a
 * table; and since its parameters are always JSON texts, planning it anew teaches nothing.
 *
 * The planner adds `cpu_operator_cost` for each level of an index. At the default, it takes a smaller index, and then
 * sorts, where it expects one row, and there can be thousands. Below 1 % of the cost of a look-up, the order counts.
 */
const PLANNER = [
  'enable_seqscan=off', 'enable_hashjoin=off', 'enable_mergejoin=off', 'enable_bitmapscan=off',
  'enable_incremental_sort=off', 'cpu_operator_cost=0.0001', 'jit=off', 'plan_cache_mode=force_generic_plan'
]

/** SQLSTATE too_many_connections: the server, or this user, has no connection left. */
const TOO_MANY_CONNECTIONS = '53300'

/** Pause before another attempt to connect. Meanwhile a connection of the pool may become free. */
const RETRY_MS = 50

type Release = (error?: Error | boolean) => void
type ConnectCallback = (error: Error | undefined, client?: pg.PoolClient, release?: Release) => void

export interface PoolOptions {
  /** Maximum number of connections. */
  size: number
  /** Maximum time to wait for a connection, and for a statement, in ms. */
  timeout: number
}

/** Connections to PostgreSQL with the settings that the statements need. */
export class ConnectionPool extends pg.Pool {
  readonly #timeout: number

  constructor (url: string, { size, timeout }: PoolOptions) {
    // Later than the statement's own time-out, that of a lock would never apply.
    const lockTimeout = Math.min(Math.round(timeout / 2), LOCK_TIMEOUT_MS)
    const settings = [...PLANNER, `statement_timeout=${timeout}`, `lock_timeout=${lockTimeout}`]
    super({
      connectionString: url,
      max: size,
      connectionTimeoutMillis: timeout,
      query_timeout: timeout,
      keepAlive: true,
      application_name: 'petstore',
      // By SET, because `options` in the URL would replace these, and some poolers refuse unknown startup parameters.
      // eslint-disable-next-line @typescript-eslint/no-misused-promises -- the pool waits for it
      onConnect: async (client) => {
        await client.query(settings.map((setting) => `SET ${setting}`).join('; '))
      }
    })
    this.#timeout = timeout
    // A connection whose ROLLBACK failed is still inside its transaction: the next one would commit the rest of that.
    this.on('release', (_error, connection) => {
      if (connection.getTransactionStatus() !== 'I') connection.end().catch(() => {})
    })
  }

  /** Waits when the server has no connection left: one of this pool's becomes free soon. */
  override connect (): Promise<pg.PoolClient>
  override connect (callback: ConnectCallback): void
  override connect (callback?: ConnectCallback): Promise<pg.PoolClient> | void {
    const connected = this.#connectPatiently()
    if (callback === undefined) return connected
    connected.then(
      (client) => { callback(undefined, client, client.release.bind(client)) },
      (error: Error) => { callback(error) }
    )
  }

  async #connectPatiently (): Promise<pg.PoolClient> {
    const deadline = Date.now() + this.#timeout
    for (;;) {
      try {
        return await super.connect()
      } catch (error) {
        if ((error as { code?: string }).code !== TOO_MANY_CONNECTIONS || Date.now() > deadline) throw error
      }
      await sleep(RETRY_MS)
    }
  }
}
