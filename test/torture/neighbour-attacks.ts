import { setTimeout as sleep } from 'node:timers/promises'
import type { Dialect } from '../../src/database/dialect.ts'
import { openDatabase } from '../../src/database/open-database.ts'
import { openReceiver } from '../support/receiver.ts'
import type { ScenarioContext } from './harness.ts'
import {
  flood, inParallel, occupy, openAccount, openConnection, requests, send, type Traffic
} from './neighbour-traffic.ts'

export interface Target extends Traffic {
  context: ScenarioContext
  databaseUrl: string
}

/** Runs until the signal aborts. */
export type Attack = (stopped: AbortSignal) => Promise<unknown>

/**
 * The attacks. Each prepares what it needs, such as an account with large records, before the victim is measured. The
 * names begin with the number of the attack in the audit that found it.
 */
export const ATTACKS: Record<string, (target: Target) => Promise<Attack>> = {
  'N1 pipelined large pages, not read': async (target) => {
    const pages = requests(300, 'GET', '/messages?limit=100', await openLargeStore(target))
    return async (stopped) => await occupy(target, 8, pages, stopped)
  },

  'N2 connections that read nothing': async (target) => {
    const page = requests(1, 'GET', '/messages?limit=100', await openLargeStore(target))
    return async (stopped) => await occupy(target, 60, page, stopped)
  },

  'N3 filters that match nothing in a large category': async (target) => {
    const { key, categoryId } = await openSeededStore(target, { pets: target.context.quick ? 5_000 : 300_000 })
    const search = requests(1, 'GET', `/pets?categoryId=${categoryId}&status=sold`, key)
    return async (stopped) => await flood(target, 64, search, stopped)
  },

  'N4 revocations beside as many API keys as possible': async (target) => {
    const { key } = await openAccount(target)
    let isFull = false
    await inParallel(20, target.context.quick ? 6 : 1_500, async () => {
      if (!isFull) isFull = (await send(target, 'POST', '/account/keys', key, {})).status !== 201
    })
    const revocations = requests(20, 'DELETE', '/account/keys/1', key)
    return async (stopped) => await flood(target, 10, revocations, stopped)
  },

  'N5 accounts that are opened, filled and deleted': async (target) => {
    const signUp = requests(1, 'POST', '/accounts', undefined, { name: 'A store' })
    return async (stopped) => {
      await inParallel(4, 1, async () => {
        const connections = await inParallel(10, 1, async () => await openConnection(target, stopped))
        while (!stopped.aborted) {
          const { apiKey } = JSON.parse((await connections[0]!(signUp)).split('\r\n\r\n')[1]!)
          const write = requests(1, 'POST', '/categories', apiKey, { name: 'Dogs' })
          const deletion = requests(1, 'DELETE', '/account', apiKey)
          await Promise.all(connections.map(async (send, i) => await send(i === 0 ? deletion : write)))
        }
      }).catch((error: unknown) => { if (!stopped.aborted) throw error })
    }
  },

  'N6 webhooks that respond after 14 s': async (target) => {
    const { context: { quick, atEnd } } = target
    const receiver = await openReceiver({ teardown: atEnd }, (response) => {
      setTimeout(() => { response.writeHead(204).end() }, 14_000)
    })
    const keys = await inParallel(quick ? 10 : 20, 1, async () => {
      const { key } = await openAccount(target)
      await inParallel(20, 1, async () => { await send(target, 'POST', '/webhooks', key, { url: receiver.url }) })
      return key
    })
    return async (stopped) => {
      while (!stopped.aborted) {
        await Promise.all(keys.map(async (key) => await send(target, 'POST', '/messages', key, { message: 'Hello' })))
        await sleep(200)
      }
    }
  },

  'N7 sign-ups': async (target) => {
    const signUps = requests(1, 'POST', '/accounts', undefined, { name: 'A store' })
    return async (stopped) => await flood(target, 50, signUps, stopped)
  },

  'N8 pipelined writes': async (target) => {
    const { key } = await openAccount(target)
    const writes = requests(400, 'POST', '/categories', key, { name: 'Dogs' })
    return async (stopped) => await flood(target, 20, writes, stopped)
  },

  'N9 the deletion of a large account': async (target) => {
    const pets = target.context.quick ? 1_000 : 300_000
    const { account, key } = await openSeededStore(target, { pets, orders: pets, events: 3 * pets })
    return async (stopped) => {
      const { status } = await send(target, 'DELETE', '/account', key)
      if (status !== 204) throw new Error(`DELETE /account is answered ${status}`)
      // Its rows are erased later. A version before that has no such column, and has erased them.
      await run(target, ({ toTime }) =>
        [`UPDATE accounts SET deleted_at = ${toTime(EARLIER)} WHERE id = ${account} AND deleted_at IS NOT NULL`])
        .catch(() => {})
      await untilAborted(stopped)
    }
  },

  'N10 the deletion of webhooks with many deliveries': async (target) => {
    const { key, account } = await openSeededStore(target, {})
    const ids = await inParallel(20, 1, async () => {
      const { body: { id } } = await send(target, 'POST', '/webhooks', key, { url: 'http://127.0.0.1:9/' })
      return id as number
    })
    const deliveries = target.context.quick ? 200 : 50_000
    await run(target, ({ toTime }) => [`
      INSERT INTO deliveries (account_id, webhook_id, event_id, next_try_at, give_up_at) ${count(deliveries)}
      SELECT ${account}, w.id, n.i, ${toTime(LATER)}, ${toTime(LATER)} FROM n
      CROSS JOIN webhooks w WHERE w.account_id = ${account}`])
    return async (stopped) => {
      await Promise.all(ids.map(async (id) => {
        const { status } = await send(target, 'DELETE', `/webhooks/${id}`, key)
        if (status !== 204) throw new Error(`DELETE /webhooks is answered ${status}`)
      }))
      await untilAborted(stopped)
    }
  },

  'N21 events that are sent again to a slow receiver': async (target) => {
    const { context: { quick, atEnd } } = target
    const to = quick ? 1_000 : 10_000
    const { key } = await openSeededStore(target, { events: to - 1 })
    const receiver = await openReceiver({ teardown: atEnd }, (response) => {
      setTimeout(() => { response.writeHead(204).end() }, 14_000)
    })
    // Events that wait are not enqueued again, so each resend has a new webhook.
    const resend = async (): Promise<void> => {
      const { body: { id } } = await send(target, 'POST', '/webhooks', key, { url: receiver.url })
      const { body } = await send(target, 'POST', `/webhooks/${id}/resend`, key, { from: 1, to })
      if (body.queued !== to) throw new Error(`resend is answered ${JSON.stringify(body)}`)
      await send(target, 'DELETE', `/webhooks/${id}`, key)
    }
    return async (stopped) => {
      await inParallel(4, 1, async () => { while (!stopped.aborted) await resend() })
        .catch((error: unknown) => { if (!stopped.aborted) throw error })
    }
  }
}

async function untilAborted (signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await new Promise((resolve) => { signal.addEventListener('abort', resolve) })
}

/** Opens an account with 100 messages of 40 KB. @returns its API key */
export async function openLargeStore (target: Target): Promise<string> {
  const { key } = await openAccount(target)
  const message = '😀'.repeat(10_000)
  await inParallel(10, 10, async () => { await send(target, 'POST', '/messages', key, { message }) })
  return key
}

interface Rows { pets?: number, orders?: number, events?: number }
interface SeededStore { account: number, key: string, categoryId: number }

/** Opens an account and adds rows in its database: over HTTP, they would take minutes. */
async function openSeededStore (target: Target, { pets = 0, orders = 0, events = 0 }: Rows): Promise<SeededStore> {
  const { account, key } = await openAccount(target)
  const { body: { id: categoryId } } = await send(target, 'POST', '/categories', key, { name: 'Dogs' })
  await run(target, ({ toTime }) => [
    `INSERT INTO pets (account_id, category_id, name) ${count(pets)}
      SELECT ${account}, ${categoryId}, 'Rex' FROM n`,
    `INSERT INTO inventory_items (pet_id, account_id, quantity)
      SELECT p.id, p.account_id, 5 FROM pets p WHERE p.account_id = ${account} LIMIT ${orders}`,
    `INSERT INTO orders (account_id, pet_id, quantity)
      SELECT p.account_id, p.id, 1 FROM pets p WHERE p.account_id = ${account} LIMIT ${orders}`,
    `INSERT INTO events (account_id, id, type, timestamp, data) ${count(events)}
      SELECT ${account}, n.i + 1, 'category.created', ${toTime(LATER)}, '{"category":{"id":1,"name":"Dogs"}}' FROM n`,
    `UPDATE accounts SET last_event_id = last_event_id + ${events} WHERE id = ${account}`
  ])
  return { account, key, categoryId }
}

/** A literal for a time at which nothing is due. */
export const LATER = "'2096-01-01T00:00:00.000Z'"

/** A literal for a time that is long past. */
export const EARLIER = "'2006-01-01T00:00:00.000Z'"

/** Returns a CTE with the numbers from 1. */
export function count (to: number): string {
  return `WITH RECURSIVE n(i) AS (SELECT 1 WHERE ${to} > 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${to})`
}

export async function run ({ databaseUrl }: Target, statements: (dialect: Dialect) => string[]): Promise<void> {
  const { prisma, dialect, close } = await openDatabase({ url: databaseUrl, pool: 2, timeout: 600_000 })
  try {
    for (const statement of statements(dialect)) {
      // On SQLite, a transaction waits for the write lock.
      await prisma.$transaction(async (prisma) => { await prisma.$executeRawUnsafe(statement) })
    }
  } finally {
    await close()
  }
}
