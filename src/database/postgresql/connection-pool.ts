import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { DatabaseUnavailable } from '../../errors.ts'
import { OperationalError } from '../../operational-error.ts'
import { classifyError, TOO_MANY_CONNECTIONS, withDeadline } from '../error-classification.ts'
import type { OwnStatement } from '../statements.ts'
import type { ReservedConnection } from '../transact.ts'
import { connectionOf } from './connection-url.ts'
import { prepareSession } from './session.ts'
import { PipelinedClient } from './pipelined-client.ts'

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

/** Interval of attempts to open another connection after the server refused one. */
const RETRY_MS = 100

/** Time for which a part that gave a connection up opens no other: ten attempts for the one that waits for it. */
const YIELD_MS = 10 * RETRY_MS

/** The statements of a lost connection fail with its error. Without a listener, the error would end the process. */
const ignoreError = (): void => {}

type PooledClient = pg.PoolClient & PipelinedClient

export interface PoolOptions {
  /** Maximum number of connections. */
  size: number
  /** Maximum time to wait for a connection, and for a statement, in ms. */
  timeout: number
  /** Maximum time that a statement waits for a lock, in ms; 0 is no limit. */
  lockTimeout: number
}

/**
 * Connections to PostgreSQL with the settings that the statements need. If the server refuses further connections,
 * callers wait for those that are open, or for the server to allow one.
 */
export class ConnectionPool extends pg.Pool {
  readonly #limits: PoolOptions
  /** Called with the number of open connections when the server refuses another one. */
  readonly refusalListeners: Array<(open: number) => void> = []
  /** Allows one connection more. */
  #growth: NodeJS.Timeout | undefined

  constructor (url: string, limits: PoolOptions) {
    const { size, timeout, lockTimeout } = limits
    // Later than the statement's own time-out, that of a lock would never apply.
    const lockLimit = Math.min(Math.round(timeout / 2), lockTimeout)
    const settings = [...PLANNER, `statement_timeout=${timeout}`, `lock_timeout=${lockLimit}`]
    super({
      max: size,
      Client: PipelinedClient,
      connectionTimeoutMillis: timeout,
      keepAlive: true,
      application_name: 'petstore',
      ...connectionOf(url),
      // eslint-disable-next-line @typescript-eslint/no-misused-promises -- the pool waits for it
      onConnect: async (client) => { await prepareSession(client, url, { settings }) }
    })
    this.#limits = limits
    this.on('error', ignoreError)
    this.on('connect', (client) => { client.on('error', ignoreError) })
  }

  /** Runs statements on one connection, outside a transaction. */
  readonly run = async (statements: readonly OwnStatement[]): Promise<object[][]> => {
    const client = await this.#connect()
    try {
      const rows = await this.#runOn(client, statements).catch(async (error: unknown) => {
        if (classifyError(error) !== 'conflict') throw error
        // Nothing of the message had an effect, and an outdated statement is prepared anew.
        return await this.#runOn(client, statements)
      })
      client.release()
      return rows
    } catch (error) {
      client.release(error as Error)
      throw error
    }
  }

  /** Reserves a connection for a transaction. */
  readonly reserve = async (): Promise<ReservedConnection> => {
    const client = await this.#connect()
    return {
      run: async (statements) => await this.#runOn(client, statements),
      release: (failure) => { client.release(failure) }
    }
  }

  /**
   * Not by the `query_timeout` of node-postgres: it assigns a closure to the query, which V8 creates in the old
   * generation. Until a full collection, each would keep the statements and their rows.
   */
  async #runOn (client: PooledClient, statements: readonly OwnStatement[]): Promise<object[][]> {
    return await withDeadline(client.run(statements), this.#limits.timeout)
  }

  /** Ends a connection as soon as it is free, and so leaves it to another part of the service. */
  async yieldConnection (): Promise<void> {
    if (this.totalCount === 0) return
    this.#limitTo(this.totalCount - 1, YIELD_MS)
    const client = await this.connect().catch(() => undefined)
    client?.release(true)
  }

  async #connect (): Promise<PooledClient> {
    const latest = performance.now() + this.#limits.timeout
    for (;;) {
      try {
        return await this.connect() as PooledClient
      } catch (error) {
        if ((error as { code?: string }).code !== TOO_MANY_CONNECTIONS || performance.now() > latest) {
          // Whatever the reason: a changed password, a renamed database, one that is closed for maintenance.
          throw error instanceof OperationalError ? error : new DatabaseUnavailable({ cause: error })
        }
      }
      this.#limitTo(this.totalCount)
      for (const listener of this.refusalListeners) listener(this.totalCount)
      await sleep(RETRY_MS)
    }
  }

  /** Opens no more connections than the server allows, and tries one more after a time. */
  #limitTo (connections: number, retryMs = RETRY_MS): void {
    clearTimeout(this.#growth)
    // With a maximum of 0, the pool would try none.
    this.options.max = Math.min(Math.max(1, connections), this.#limits.size)
    if (this.options.max === this.#limits.size) return
    this.#growth = setTimeout(() => {
      this.#limitTo(Math.max(this.options.max, this.totalCount) + 1)
    }, retryMs).unref()
  }
}
