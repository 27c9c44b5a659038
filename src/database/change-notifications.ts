import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from 'pg'
import { mergeChanges, type Changes } from './unit-of-work/success.ts'
import type { Database } from './database.ts'
import { TOO_MANY_CONNECTIONS } from './error-classification.ts'
import { connectionOf, schemaOf, type Connection } from './postgresql/connection-url.ts'
import { prepareSession } from './postgresql/session.ts'

/**
 * Announces changes to the other processes on the same PostgreSQL, and receives theirs. Sent after COMMIT, outside the
 * transaction: inside, NOTIFY would lock all commits of the database against each other. What gets lost is found by
 * the slow polls of event streams and workers. On SQLite there is no other process to notify.
 *
 * Every role of the database may notify, so what is received is a hint to look, and never a reason to refuse anything.
 */
export interface Notifier {
  announce: (changes: Changes) => void
  close: () => Promise<void>
}

export interface NotifierOptions {
  url: string
  /** Called with what other processes say that they changed. */
  onChange: (changes: Changes) => void
  onError: (error: unknown) => void
  /** `TIMEOUT_MS` by default. */
  timeoutMs?: number
}

const CHANNEL = 'petstore_changes'

/** How long changes are collected before they are announced together. */
const COLLECT_MS = 10

/** Maximum number of ids in a notification of 8000 bytes; polls and the ends of leases find what does not fit. */
const MAX_IDS = 400

/**
 * A server that does not accept the connection, or answer a statement, within this time is tried again. The connection
 * is checked at this interval: one that is lost receives nothing.
 */
const TIMEOUT_MS = 10_000

/** Pause before a lost connection is made again. */
const RECONNECT_DELAY_MS = 1_000

/** The same if the server had too few connections: those of requests go first. */
const SCARCE_DELAY_MS = 10_000

export function createNotifier (database: Database, options: NotifierOptions): Notifier {
  if (!database.dialect.isServer) return { announce () {}, close: async () => {} }
  const notifier = new PostgresNotifier(options)
  database.onRefused?.((open) => { if (open === 0) notifier.yieldConnection() })
  notifier.start()
  return notifier
}

class PostgresNotifier implements Notifier {
  readonly #options: NotifierOptions
  readonly #timeoutMs: number
  readonly #server: Connection
  /** The stores in other schemas of the database have the same channel. */
  readonly #schema: string
  /** Identifies this process, whose own notifications come back as well. */
  readonly #origin = randomBytes(6).toString('hex')
  #pending: Changes = {}
  #client: Client | undefined
  #timer: NodeJS.Timeout | undefined
  /** One notification at a time: on a connection that went silent they would pile up. */
  #sending = false
  /** Whether the server has too few connections. */
  #isScarce = false
  #closed = false

  constructor (options: NotifierOptions) {
    this.#options = options
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS
    this.#server = connectionOf(options.url)
    this.#schema = schemaOf(options.url)
  }

  start (): void {
    this.#listen().catch(this.#options.onError)
  }

  announce (changes: Changes): void {
    mergeChanges(this.#pending, changes)
    this.#timer ??= setTimeout(() => { this.#send() }, COLLECT_MS)
  }

  /** Leaves the connection to requests. Polls find the changes meanwhile. */
  yieldConnection (): void {
    if (this.#client === undefined) return
    this.#isScarce = true
    disconnect(this.#client)
  }

  async close (): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    await this.#client?.end().catch(() => {})
  }

  /** Sends the pending changes. Without a connection they wait for the next one. */
  #send (): void {
    this.#timer = undefined
    if (this.#client === undefined || this.#sending || Object.keys(this.#pending).length === 0) return
    const payload = JSON.stringify({ origin: this.#origin, schema: this.#schema, changes: shortened(this.#pending) })
    this.#pending = {}
    this.#sending = true
    const notify = `NOTIFY ${CHANNEL}, '${payload.replaceAll("'", "''")}'`
    // One transaction, which waits for no disk: a notification lost in a crash costs nothing.
    void this.#run(this.#client, `SET LOCAL synchronous_commit = off; ${notify}`).finally(() => {
      this.#sending = false
      if (!this.#closed) this.#timer ??= setTimeout(() => { this.#send() }, COLLECT_MS)
    })
  }

  /** Runs a statement. A connection on which it fails or takes too long is lost, and replaced. */
  async #run (connection: Client, sql: string): Promise<void> {
    try {
      await connection.query(sql)
    } catch (error) {
      if (!this.#closed) this.#options.onError(error)
      disconnect(connection)
    }
  }

  async #listen (): Promise<void> {
    const { default: pg } = await import('pg')
    for (;;) {
      const connection = new pg.Client({
        connectionTimeoutMillis: this.#timeoutMs,
        query_timeout: this.#timeoutMs,
        keepAlive: true,
        application_name: 'petstore events',
        ...this.#server
      })
      try {
        await this.#listenOn(connection)
      } catch (error) {
        if (!this.#closed) this.#options.onError(error)
        this.#isScarce ||= (error as { code?: string }).code === TOO_MANY_CONNECTIONS
      }
      this.#client = undefined
      disconnect(connection)
      if (this.#closed) return
      await sleep(this.#isScarce ? SCARCE_DELAY_MS : RECONNECT_DELAY_MS, undefined, { ref: false })
      this.#isScarce = false
    }
  }

  /** Returns, or throws, when the connection has ended. */
  async #listenOn (connection: Client): Promise<void> {
    const lost = new Promise<never>((_resolve, reject) => {
      connection.on('error', reject).on('end', () => { reject(new Error('the connection ended')) })
    })
    lost.catch(() => {})
    await connection.connect()
    await prepareSession(connection, this.#options.url, { settings: [`statement_timeout=${this.#timeoutMs}`] })
    connection.on('notification', ({ payload = '' }) => {
      const notification = parseNotification(payload)
      if (notification === undefined || notification.origin === this.#origin) return
      if (notification.schema === this.#schema) this.#options.onChange(notification.changes)
    })
    await connection.query(`LISTEN ${CHANNEL}`)
    // A call of `close` in the meantime did not end this connection.
    if (this.#closed) return
    this.#client = connection
    const check = setInterval(() => { void this.#run(connection, 'SELECT 1') }, this.#timeoutMs).unref()
    this.#send()
    await lost.finally(() => { clearInterval(check) })
  }
}

interface Notification { origin: string, schema: string, changes: Changes }

/** Returns `undefined` for a text that is not a notification of this service. */
function parseNotification (payload: string): Notification | undefined {
  try {
    const { origin, schema = 'public', changes } = JSON.parse(payload) as Record<string, unknown>
    return typeof origin === 'string' && typeof schema === 'string' && areChanges(changes)
      ? { origin, schema, changes }
      : undefined
  } catch {
    return undefined
  }
}

function areChanges (value: unknown): value is Changes {
  return value instanceof Object &&
    Object.values(value).every((ids) => Array.isArray(ids) && ids.every(Number.isSafeInteger))
}

/** Ends a connection without waiting for its server, which may not answer. */
function disconnect (connection: Client): void {
  connection.end().catch(() => {})
}

/** Keeps as many ids as a notification has room for, and the channels with few ids whole. */
function shortened (changes: Changes): Changes {
  let left = MAX_IDS
  const kept: Changes = {}
  const channels = Object.entries(changes).map(([channel, ids]) => ({ channel, ids: [...new Set(ids)] }))
  for (const { channel, ids } of channels.sort((a, b) => a.ids.length - b.ids.length)) {
    kept[channel] = ids.slice(0, left)
    left -= kept[channel].length
  }
  return kept
}
