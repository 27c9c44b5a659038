import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from 'pg'
import type { News } from './group-commit/command.ts'
import type { Database } from './open-database.ts'

/**
 * Tells the other processes on the same PostgreSQL what a commit has for them, and hears it from them. Sent
 * after COMMIT, outside the transaction: inside, NOTIFY would lock all commits of the database against each
 * other. What gets lost is found by the slow polls of feed and worker. On SQLite there is nobody to tell.
 */
export interface Notifier {
  tell: (news: News) => void
  close: () => Promise<void>
}

const CHANNEL = 'petstore_events'

/** Accounts are collected this long before they are told of, in ms. */
const GATHER_MS = 10

/** A notification holds 8000 bytes at most; what does not fit is left to the polls, and to the leases' ends. */
const MAX_ACCOUNTS = 350
const MAX_WEBHOOKS = 50

/** A server that does not answer within this, in ms, is tried again. */
const CONNECT_MS = 10_000

/** Pause before a lost connection is made again, in ms. */
const RECONNECT_MS = 1_000

export function createNotifier (database: Database, url: string, heard: (news: News) => void, failed: (error: unknown) => void): Notifier {
  if (database.dialect.name === 'sqlite') return { tell () {}, close: async () => {} }

  const self = randomBytes(6).toString('hex')
  const gathered = new Set<number>()
  const changed = new Set<number>()
  let anyDue = false
  let closed = false
  let client: Client | undefined
  let timer: NodeJS.Timeout | undefined
  /** One at a time: on a connection that went silent they would pile up. */
  let sending = false

  function tell ({ accounts, due, webhooks }: News): void {
    for (const account of accounts) gathered.add(account)
    for (const webhook of webhooks) changed.add(webhook)
    anyDue ||= due
    timer ??= setTimeout(send, GATHER_MS)
  }

  /** While there is no connection, what is to be told waits for the next. */
  function send (): void {
    timer = undefined
    if (client === undefined || sending || (gathered.size === 0 && !anyDue)) return
    const payload = `${self} ${anyDue ? 'due' : ''} ${[...gathered].slice(0, MAX_ACCOUNTS).join(',')} ${[...changed].slice(0, MAX_WEBHOOKS).join(',')}`
    gathered.clear()
    changed.clear()
    anyDue = false
    sending = true
    // One transaction, which waits for no disk: a notification that a crash takes along costs nothing.
    client.query(`SET LOCAL synchronous_commit = off; NOTIFY ${CHANNEL}, '${payload}'`).catch(failed).finally(() => {
      sending = false
      if (!closed) timer ??= setTimeout(send, GATHER_MS)
    })
  }

  async function listen (): Promise<void> {
    const { default: pg } = await import('pg')
    for (;;) {
      const connection = new pg.Client({ connectionString: url, connectionTimeoutMillis: CONNECT_MS, keepAlive: true, application_name: 'petstore events' })
      try {
        const lost = new Promise((_resolve, reject) => { connection.on('error', reject).on('end', () => { reject(new Error('the connection ended')) }) })
        lost.catch(() => {})
        await connection.connect()
        connection.on('notification', ({ payload = '' }) => {
          const [origin, due = '', accounts = '', webhooks = ''] = payload.split(' ')
          if (origin !== self) heard({ accounts: numbers(accounts), due: due !== '', webhooks: numbers(webhooks) })
        })
        await connection.query(`LISTEN ${CHANNEL}`)
        // Whoever closed meanwhile knew nothing of this connection.
        if (!closed) {
          client = connection
          send()
          await lost
        }
      } catch (error) {
        if (!closed) failed(error)
      }
      client = undefined
      await connection.end().catch(() => {})
      if (closed) return
      await sleep(RECONNECT_MS, undefined, { ref: false })
    }
  }
  listen().catch(failed)

  return {
    tell,
    async close () {
      closed = true
      clearTimeout(timer)
      await client?.end().catch(() => {})
    }
  }
}

function numbers (list: string): number[] {
  return list === '' ? [] : list.split(',').map(Number)
}
