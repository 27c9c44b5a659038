import pg from 'pg'
import { TOO_MANY_CONNECTIONS, classifyError } from '../error-classification.ts'
import type { OwnStatement } from '../statements.ts'
import { prepareSession } from './session.ts'
import { TransactionClient, isStalePlan } from './transaction-client.ts'

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

/** Interval of attempts to open another connection after the server refused one. */
const RETRY_MS = 100

type Release = (error?: Error | boolean) => void
type ConnectCallback = (error: Error | undefined, client?: pg.PoolClient, release?: Release) => void

export interface PoolOptions {
  /** Maximum number of connections. */
  size: number
  /** Maximum time to wait for a connection, and for a statement, in ms. */
  timeout: number
  /** Called when the server refuses a connection and there is no other to wait for. */
  onStarved?: () => void
}

/** The statements of a lost connection fail with its error. Without a listener, the error would end the process. */
const ignoreError = (): void => {}

interface PendingRows {
  resolve: (rows: object[] | Promise<object[]>) => void
  reject: (error: unknown) => void
}

/** A caller that waits for a connection. */
interface Request {
  callback: ConnectCallback
  /** Answers the caller when it has waited too long. Set when it begins to wait. */
  timer: NodeJS.Timeout | undefined
  hasTimedOut: boolean
}

/**
 * Connections to PostgreSQL with the settings that the statements need.
 *
 * If the server refuses further connections, callers wait for those that are open. A pool without any borrows from its
 * partner, whose own callers and borrowers take turns: reads cannot keep the last connection from writes, nor writes
 * from reads.
 */
export class ConnectionPool extends pg.Pool {
  readonly #size: number
  readonly #timeout: number
  readonly #onStarved: () => void
  /** Number of connections that the server seems to allow. */
  #capacity: number
  /** Number of connections that are in use, or being opened. */
  #inUse = 0
  readonly #waiting: Request[] = []
  /** Callers of the partner. */
  readonly #borrowers: Request[] = []
  #isBorrowersTurn = true
  #retryTimer: NodeJS.Timeout | undefined
  /** The pool that lends its connections to this one. */
  partner: ConnectionPool | undefined

  constructor (url: string, { size, timeout, onStarved = () => {} }: PoolOptions) {
    // Later than the statement's own time-out, that of a lock would never apply.
    const lockTimeout = Math.min(Math.round(timeout / 2), LOCK_TIMEOUT_MS)
    const settings = [...PLANNER, `statement_timeout=${timeout}`, `lock_timeout=${lockTimeout}`]
    super({
      connectionString: url,
      max: size,
      Client: class extends TransactionClient {
        constructor (options?: pg.ClientConfig) { super(options, timeout) }
      },
      connectionTimeoutMillis: timeout,
      keepAlive: true,
      application_name: 'petstore',
      // eslint-disable-next-line @typescript-eslint/no-misused-promises -- the pool waits for it
      onConnect: async (client) => { await prepareSession(client, url, { settings }) }
    })
    this.#size = this.#capacity = size
    this.#timeout = timeout
    this.#onStarved = onStarved
    this.on('release', (_error, connection) => {
      // A connection whose ROLLBACK failed is still inside its transaction: the next one would commit the rest of that.
      if (connection.getTransactionStatus() !== 'I') connection.end().catch(() => {})
      this.#inUse--
      // The pool takes the connection back after this event.
      if (this.#hasRequests) queueMicrotask(() => { this.#serve() })
    })
  }

  override connect (): Promise<pg.PoolClient>
  override connect (callback: ConnectCallback): void
  override connect (callback?: ConnectCallback): Promise<pg.PoolClient> | void {
    if (callback !== undefined) return this.#request(callback)
    return new Promise((resolve, reject) => {
      this.#request((error, client) => {
        if (error === undefined) resolve(client!)
        else reject(error)
      })
    })
  }

  /** Runs statements on one connection in one round trip, and returns the rows of each. */
  async runTogether (statements: readonly OwnStatement[]): Promise<object[][]> {
    return await this.#withClient(async (client) => await client.runTogether(statements))
  }

  /** Runs statements on one connection in one message. Each has its rows, or its error, without those after it. */
  runEach (statements: readonly OwnStatement[]): Array<Promise<object[]>> {
    const pending: PendingRows[] = []
    const results = statements.map(async () => await new Promise<object[]>((resolve, reject) => {
      pending.push({ resolve, reject })
    }))
    this.#withClient(async (client) => {
      const left = statements.slice(statements.length - pending.length)
      await client.runEach(left, (rows) => { pending.shift()!.resolve(rows) })
    }).catch((error: unknown) => {
      const [failed, ...others] = pending
      failed?.reject(error)
      if (classifyError(error) === 'unavailable') return others.forEach(({ reject }) => { reject(error) })
      if (others.length === 0) return
      // The server has skipped those behind the statement that failed.
      const rows = this.runEach(statements.slice(statements.length - others.length))
      for (const [i, { resolve }] of others.entries()) resolve(rows[i]!)
    })
    return results
  }

  async #withClient<T> (use: (client: TransactionClient) => Promise<T>): Promise<T> {
    const client = await this.connect() as pg.PoolClient & TransactionClient
    client.on('error', ignoreError)
    try {
      const result = await use(client)
      client.release()
      return result
    } catch (error) {
      client.release(error as Error)
      // Nothing of the message had an effect. Each connection with such a statement is replaced.
      if (isStalePlan(error)) return await this.#withClient(use)
      throw error
    } finally {
      client.off('error', ignoreError)
    }
  }

  get #hasRequests (): boolean {
    return this.#waiting.length > 0 || this.#borrowers.length > 0
  }

  #request (callback: ConnectCallback): void {
    const request: Request = { callback, timer: undefined, hasTimedOut: false }
    if (this.#inUse < this.#capacity) this.#open(request)
    else this.#wait(request)
  }

  /** Opens a connection, or takes one that is idle. */
  #open (request: Request): void {
    this.#inUse++
    super.connect((error, client, release) => {
      if (client === undefined) return this.#refuse(request, error!)
      if (request.hasTimedOut) return release()
      clearTimeout(request.timer)
      request.callback(undefined, client, release)
    })
  }

  #refuse (request: Request, error: Error): void {
    this.#inUse--
    if (request.hasTimedOut) {
      // The caller was answered.
    } else if ((error as { code?: string }).code === TOO_MANY_CONNECTIONS) {
      this.#waiting.unshift(request)
      this.#startTimer(request)
      this.#limitTo(this.totalCount)
    } else {
      clearTimeout(request.timer)
      request.callback(error)
    }
    this.#serve()
  }

  #wait (request: Request): void {
    this.#startTimer(request)
    this.#waiting.push(request)
    if (this.#capacity === 0) this.#borrow()
  }

  #startTimer (request: Request): void {
    request.timer ??= setTimeout(() => {
      request.hasTimedOut = true
      request.callback(new Error('timeout exceeded when trying to connect'))
    }, this.#timeout).unref()
  }

  /** Sends all callers to the partner, if it has a connection. */
  #borrow (): void {
    if (this.partner === undefined || this.partner.totalCount === 0) return this.#onStarved()
    for (const request of this.#waiting.splice(0)) this.partner.#lend(request)
  }

  #lend (request: Request): void {
    if (this.#inUse < this.#capacity) this.#open(request)
    else this.#borrowers.push(request)
  }

  /** Gives free connections to those who wait. */
  #serve (): void {
    while (this.#inUse < this.#capacity) {
      const request = this.#nextRequest()
      if (request === undefined) return
      if (!request.hasTimedOut) this.#open(request)
    }
  }

  #nextRequest (): Request | undefined {
    const [first, second] = this.#isBorrowersTurn ? [this.#borrowers, this.#waiting] : [this.#waiting, this.#borrowers]
    this.#isBorrowersTurn = !this.#isBorrowersTurn
    return first.shift() ?? second.shift()
  }

  /** Opens no more connections than the server allows, and tries one more at an interval. */
  #limitTo (connections: number): void {
    this.#capacity = Math.min(connections, this.#size)
    this.options.max = Math.max(1, this.#capacity)
    if (this.#capacity === this.#size) return
    if (this.#capacity === 0) this.#borrow()
    this.#retryTimer ??= setTimeout(() => {
      this.#retryTimer = undefined
      this.#limitTo(Math.max(this.#capacity, this.totalCount) + 1)
      this.#serve()
    }, RETRY_MS).unref()
  }
}
