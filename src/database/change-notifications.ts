import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from 'pg'
import type { Changes } from './unit-of-work/success.ts'
import type { Database } from './database.ts'
import { TOO_MANY_CONNECTIONS } from './error-classification.ts'
import { getOrAdd } from './get-or-add.ts'
import { connectionOf, schemaOf, SERVER_TIMEOUT_MS } from './postgresql/connection-url.ts'
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
  close: () => void
}

export interface NotifierOptions {
  url: string
  /** Called with what other processes say that they changed. */
  onChange: (changes: Changes) => void
  onError: (error: unknown) => void
  /**
   * A server that does not accept the connection, or answer a statement, within this time is tried again;
   * `SERVER_TIMEOUT_MS` by default. The connection is checked at this interval: one that is lost receives nothing.
   */
  timeoutMs?: number
}

const CHANNEL = 'petstore_changes'

/** How long changes are collected before they are announced together. */
const COLLECT_MS = 10

/** Maximum number of ids in a notification of 8000 bytes; polls and the ends of leases find what does not fit. */
const MAX_IDS = 400

/** Pause before a lost connection is made again. */
const RECONNECT_DELAY_MS = 1_000

export function createNotifier (
  database: Database, { url, onChange, onError, timeoutMs = SERVER_TIMEOUT_MS }: NotifierOptions
): Notifier {
  if (!database.dialect.isServer) return { announce () {}, close () {} }
  /** The stores in other schemas of the database have the same channel. */
  const schema = schemaOf(url)
  /** Identifies this process, whose own notifications come back as well. */
  const origin = randomBytes(6).toString('hex')
  const stop = new AbortController()
  /** Ids by channel. Without a connection, they wait for the next one. */
  let pending = new Map<string, Set<number>>()
  let timer: NodeJS.Timeout | undefined
  /** One notification at a time: on a connection that went silent they would pile up. */
  let isSending = false
  /** The connection that listens, while there is one. */
  let current: { connection: Client, ended: AbortController } | undefined
  let isScarce = false

  // The connection is left to requests. Polls find the changes meanwhile.
  database.onRefused?.((open) => {
    if (open > 0 || current === undefined) return
    isScarce = true
    current.ended.abort(new Error('the server has too few connections'))
  })
  listen().catch(onError)

  return {
    announce (changes) {
      for (const [channel, ids] of Object.entries(changes)) {
        const known = getOrAdd(pending, channel, () => new Set<number>())
        for (const id of ids) if (known.size < MAX_IDS) known.add(id)
      }
      schedule()
    },
    close () {
      stop.abort()
      clearTimeout(timer)
    }
  }

  function schedule (): void {
    const canSend = current !== undefined && !isSending && !stop.signal.aborted
    if (canSend && pending.size > 0) timer ??= setTimeout(send, COLLECT_MS)
  }

  function send (): void {
    timer = undefined
    if (current === undefined) return
    const { connection, ended } = current
    const payload = JSON.stringify({ origin, schema, changes: shortened(pending) })
    pending = new Map()
    isSending = true
    const notify = `NOTIFY ${CHANNEL}, '${payload.replaceAll("'", "''")}'`
    // One transaction, which waits for no disk: a notification lost in a crash costs nothing.
    connection.query(`SET LOCAL synchronous_commit = off; ${notify}`).catch((error: unknown) => {
      ended.abort(error)
    }).finally(() => {
      isSending = false
      schedule()
    })
  }

  async function listen (): Promise<void> {
    const { default: pg } = await import('pg')
    while (!stop.signal.aborted) {
      const connection = new pg.Client({
        connectionTimeoutMillis: timeoutMs,
        query_timeout: timeoutMs,
        keepAlive: true,
        application_name: 'petstore events',
        ...connectionOf(url)
      })
      const ended = new AbortController()
      connection.on('error', (error) => { ended.abort(error) })
      connection.on('end', () => { ended.abort(new Error('the connection ended')) })
      try {
        await follow(connection, ended)
      } catch (error) {
        if (!stop.signal.aborted) onError(ended.signal.aborted ? ended.signal.reason : error)
        isScarce ||= (error as { code?: string }).code === TOO_MANY_CONNECTIONS
      }
      current = undefined
      // Its server may not answer.
      connection.end().catch(() => {})
      // Where the server has too few connections, those of requests go first.
      const pause = isScarce ? SERVER_TIMEOUT_MS : RECONNECT_DELAY_MS
      isScarce = false
      await sleep(pause, undefined, { ref: false, signal: stop.signal }).catch(() => {})
    }
  }

  /** @throws when the connection has ended, or must end */
  async function follow (connection: Client, ended: AbortController): Promise<void> {
    await connection.connect()
    await prepareSession(connection, url, { settings: [`statement_timeout=${timeoutMs}`] })
    connection.on('notification', ({ payload = '' }) => {
      const notification = parseNotification(payload)
      if (notification === undefined || notification.origin === origin) return
      if (notification.schema === schema) onChange(notification.changes)
    })
    await connection.query(`LISTEN ${CHANNEL}`)
    current = { connection, ended }
    schedule()
    const signal = AbortSignal.any([stop.signal, ended.signal])
    for (;;) {
      await sleep(timeoutMs, undefined, { ref: false, signal })
      await connection.query('SELECT 1')
    }
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

/** Keeps as many ids as a notification has room for, and the channels with few ids whole. */
function shortened (pending: ReadonlyMap<string, ReadonlySet<number>>): Changes {
  let left = MAX_IDS
  const kept: Changes = {}
  for (const [channel, ids] of [...pending].sort(([, a], [, b]) => a.size - b.size)) {
    kept[channel] = [...ids].slice(0, left)
    left -= kept[channel].length
  }
  return kept
}
