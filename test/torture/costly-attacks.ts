import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { count, EARLIER, LATER, openLargeStore, run, type Attack, type Target } from './neighbour-attacks.ts'
import { flood, inParallel, openAccount, openConnection, repeat, requests, send } from './neighbour-traffic.ts'

/**
 * Pause between waves of connections. Beside 4,800 connections with 131 KB each, a server of Node without a database
 * answers `/livez` after 1.4 to 2.5 s if they arrive at once, and after 0.5 to 1.4 s with 250 ms between waves of 400.
 */
const WAVE_MS = { small: 250, large: 500 }

/** Attacks whose requests are few or refused, and cost more than others: their bytes, their answers, what they keep. */
export const COSTLY_ATTACKS: Record<string, (target: Target) => Promise<Attack>> = {
  'N11 bodies of one-byte chunks that go on after the answer': async (target) => {
    const head = 'POST /pets HTTP/1.1\r\nHost: petstore\r\nTransfer-Encoding: chunked\r\n\r\n'
    const chunks = '1\r\nx\r\n'.repeat(10_000)
    return async (stopped) => {
      await repeat(target, 40, stopped, (socket) => {
        socket.resume().write(head)
        writeForEver(socket, chunks)
      })
    }
  },

  'N12 heads of thousands of fields': async (target) => {
    const fields = 'abc:\r\n'.repeat(9_200)
    const bytes = `GET /livez HTTP/1.1\r\nHost: petstore\r\n${fields}\r\n`
    return async (stopped) => await flood(target, 16, { bytes, count: 1 }, stopped)
  },

  'N13 a receiver that sends interim responses for ever': async (target) => {
    const receiver = createServer((socket) => {
      socket.on('error', () => {}).once('data', () => {
        writeForEver(socket, 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(1_000))
      })
    }).listen(0, '127.0.0.1')
    await once(receiver, 'listening')
    target.context.atEnd(() => receiver.close())
    const { key } = await openAccount(target)
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`
    await inParallel(4, 1, async () => await send(target, 'POST', '/webhooks', key, { url }))
    return async (stopped) => {
      while (!stopped.aborted) {
        await send(target, 'POST', '/messages', key, { message: 'Hello' })
        await sleep(500)
      }
    }
  },

  'N14 the largest file, not read': async (target) => {
    const bytes = 'GET /docs/viewer.js HTTP/1.1\r\nHost: petstore\r\n\r\n'
    return async (stopped) => {
      await repeat(target, 16, stopped, (socket) => {
        socket.once('data', () => { socket.destroy() }).write(bytes)
      })
    }
  },

  'N15 bodies of thousands of members': async (target) => {
    const { key } = await openAccount(target)
    // Below the limit of a body, with short names.
    const members = Array.from({ length: 14_000 }, (_, i) => [`a${i.toString(36)}`, 1])
    const refused = requests(1, 'POST', '/categories', key, Object.fromEntries(members))
    return async (stopped) => await flood(target, 16, refused, stopped)
  },

  'N16 more reads than one account may have waiting': async (target) => {
    const pages = requests(1, 'GET', '/messages?limit=100', await openLargeStore(target))
    return async (stopped) => await flood(target, target.context.quick ? 100 : 1_500, pages, stopped)
  },

  'N17 bodies that are never complete': async (target) => {
    const { key } = await openAccount(target)
    const head = `POST /messages HTTP/1.1\r\nHost: petstore\r\nAuthorization: Bearer ${key}\r\n`
    const bytes = `${head}Content-Type: application/json\r\nContent-Length: 131072\r\n\r\n${'x'.repeat(131_000)}`
    return async (stopped) => {
      await inWaves(target, 12, WAVE_MS.large, async (connections) => {
        await repeat(target, connections, stopped, (socket) => { socket.resume().write(bytes) })
      })
    }
  },

  'N18 answers that a fault holds back': async (target) => {
    const key = await openLargeStore(target)
    const effect = { type: 'trickle', bytesPerSecond: 1 }
    await send(target, 'POST', '/lab/faults', key, { operation: 'listMessages', effect, times: 1_000 })
    const page = requests(1, 'GET', '/messages?limit=100', key)
    return async (stopped) => await flood(target, target.context.quick ? 100 : 1_000, page, stopped)
  },

  'N19 snapshots of large records': async (target) => {
    const key = await openLargeStore(target)
    const message = '😀'.repeat(10_000)
    const more = target.context.quick ? 5 : 40
    await inParallel(10, more, async () => { await send(target, 'POST', '/messages', key, { message }) })
    return async (stopped) => {
      const request = await openConnection(target, stopped)
      const takeAndDelete = async (): Promise<void> => {
        const taken = await request(requests(1, 'POST', '/lab/snapshots', key, {}))
        const id = /"id":(\d+)/.exec(taken)?.[1]
        if (id !== undefined) await request(requests(1, 'DELETE', `/lab/snapshots/${id}`, key))
      }
      while (!stopped.aborted) {
        await takeAndDelete().catch((error: unknown) => { if (!stopped.aborted) throw error })
      }
    }
  },

  'N20 restores of messages with many deliveries': async (target) => {
    const { key, account } = await openAccount(target)
    const [messages, deliveries] = target.context.quick ? [100, 2] : [2_000, 20]
    // While they wait, the worker leaves the messages queued. All their deliveries have failed.
    await run(target, ({ toTime }) => [
      `INSERT INTO messages (id, account_id, message, waiting, created_at) ${count(messages)}
        SELECT 'restored' || n.i, ${account}, 'Hello', 1, ${toTime(EARLIER)} FROM n`,
      `INSERT INTO deliveries (
          account_id, webhook_id, event_id, message_position, state, next_try_at, give_up_at, settled_at)
        ${count(deliveries)}
        SELECT m.account_id, n.i, 1, m.position, 'failed', ${toTime(EARLIER)}, ${toTime(EARLIER)}, ${toTime(LATER)}
        FROM n CROSS JOIN messages m WHERE m.account_id = ${account}`
    ])
    const { body: { id } } = await send(target, 'POST', '/lab/snapshots', key, {})
    const restore = requests(1, 'POST', `/lab/snapshots/${id}/restore`, key)
    return async (stopped) => await flood(target, 1, restore, stopped)
  },

  'N22 a journal of large requests': async (target) => {
    const { key } = await openAccount(target)
    await send(target, 'PUT', '/lab/journal', key, { keep: 10_000 })
    // Refused without a transaction, and recorded with 16 KB of the body.
    const refused = requests(1, 'POST', '/categories', key, { name: 'x'.repeat(16_000) })
    return async (stopped) => await flood(target, 16, refused, stopped)
  },

  'N23 thousands of connections without a key': async (target) => {
    const refused = requests(1, 'GET', '/pets', undefined)
    return async (stopped) => {
      await inWaves(target, 10, WAVE_MS.small, async (connections) => {
        await flood(target, connections, refused, stopped)
      })
    }
  }
}

/** Runs an attack of 400 connections so many times at once, or a small one in the quick form. */
async function inWaves (
  { context: { quick } }: Target, waves: number, pauseMs: number, attack: (connections: number) => Promise<void>
): Promise<void> {
  if (quick) return await attack(200)
  await Promise.all(Array.from({ length: waves }, async (_, i) => {
    await sleep(pauseMs * i)
    await attack(400)
  }))
}

/** Writes a text again and again, as fast as the other side takes it. */
function writeForEver (socket: Socket, text: string): void {
  const write = (): void => { if (socket.writable) socket.write(text, write) }
  write()
}
