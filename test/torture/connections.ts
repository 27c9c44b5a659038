import { randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Service } from './service.ts'
import type { Stage, Store } from './harness.ts'

const REQUEST_TIMEOUT_MS = 2_000

/** After REQUEST_TIMEOUT_MS a slow sender is cut off within this, in ms: Node looks once a second, and the machine may be busy. */
const CUT_OFF_MS = REQUEST_TIMEOUT_MS + 4_000

/** Thousands that come at once are accepted within this, in ms: the system repeats what found no room after 1, 3 and 7 s. */
const CONNECTED_MS = 30_000

/** Nobody else waits longer than this, in ms. */
const UNDISTURBED_MS = 3_000

const LEAK_BYTES = 10 * 1024 * 1024

/** Idle, slow, broken and rude connections: none leaves anything behind, and nobody else is disturbed. */
export async function connections ({ quick, report, freshUrl, start, openStore }: Stage): Promise<void> {
  const service = await start({ DATABASE_URL: await freshUrl(), REQUEST_TIMEOUT_MS: String(REQUEST_TIMEOUT_MS) }, { preload: true })
  const store = await openStore(() => service.port, { sockets: 4 })
  const { violations, notes } = report

  // The first of each kind costs memory that stays (compiled code, statements, caches): it is no leak.
  await attack(quick ? 20 : 100)
  const guest = visit(store)
  await sleep(500)
  await guest.leave()
  const before = await measure(service)

  const other = visit(store)
  const idle = quick ? 500 : 2_000
  const sockets = await Promise.all(Array.from({ length: idle }, async () => await talk('GET /livez HTTP/1.1\r\nHost: pets\r\n\r\n', isAnswered)))
  const unanswered = sockets.filter(({ text }) => !text.startsWith('HTTP/1.1 200'))
  for (const { text, closed, took } of unanswered.slice(0, 3)) violations.push(`an idle connection is answered '${text.slice(0, 100)}'${closed ? ' and closed' : ''} after ${took.toFixed(0)} ms`)
  if (unanswered.length > 0) violations.push(`${unanswered.length} of ${idle} connections were not answered`)
  for (let round = 0; round < (quick ? 1 : 5); round++) {
    await attack(quick ? 100 : 500)
    report.rounds++
  }
  const { slowest, visits } = await other.leave()
  for (const { socket } of sockets) socket.destroy()
  if (slowest > UNDISTURBED_MS) violations.push(`a well-behaved client waited ${slowest.toFixed(0)} ms`)

  const after = await settled(service, before)
  notes.push(`${idle} idle connections; ${visits} requests of a well-behaved client, the slowest ${slowest.toFixed(0)} ms`)
  notes.push(`open files ${before.files} → ${after.files}, handles ${before.handles} → ${after.handles}, heap ${megabytes(before.heap)} → ${megabytes(after.heap)} MB`)
  if (after.files > before.files + 2) violations.push(`${before.files} open files before, ${after.files} after`)
  if (after.handles > before.handles + 2) violations.push(`${before.handles} handles before, ${after.handles} after`)
  if (after.heap > before.heap + LEAK_BYTES) violations.push(`the heap grew from ${megabytes(before.heap)} to ${megabytes(after.heap)} MB`)

  async function attack (size: number): Promise<void> {
    const authorization = `Authorization: Bearer ${store.key}`
    const many = async (attacker: (i: number) => Promise<void>): Promise<void> => { await Promise.all(Array.from({ length: size }, async (_, i) => { await attacker(i) })) }
    await Promise.all([
      many(async () => { cutOff('a slow head', await drip('GET /pets HTTP/1.1\r\nHost: pets\r\nX-Slow: ')) }),
      many(async () => { cutOff('a slow body', await drip(`POST /messages HTTP/1.1\r\nHost: pets\r\n${authorization}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"message": "`)) }),
      many(async () => {
        const { socket } = await talk(`POST /messages HTTP/1.1\r\nHost: pets\r\n${authorization}\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n${'x'.repeat(50_000)}`, () => false, 20)
        socket.resetAndDestroy()
      }),
      many(async (i) => {
        if (i % 10 > 0) return
        const ids = Array.from({ length: 20 }, (_, n) => `pipelined-${i}-${n}`)
        const requests = ids.map((id) => `GET /pets HTTP/1.1\r\nHost: pets\r\nRequest-Id: ${id}\r\n${authorization}\r\n\r\n`)
        const { socket, text } = await talk(requests.join(''), (text) => answered(text).length === ids.length, UNDISTURBED_MS * 2)
        socket.destroy()
        if (answered(text).join() !== ids.join()) violations.push(`pipelined requests were answered in the order ${answered(text).join()}`)
      }),
      many(async () => {
        const { socket, text, closed } = await talk(Buffer.concat([randomBytes(200), Buffer.from('\r\n\r\n')]), isAnswered, CUT_OFF_MS)
        socket.destroy()
        if (text !== '' && !/^HTTP\/1\.1 4(00|08|31) /.test(text)) violations.push(`garbage is answered ${text.slice(0, 100)}`)
        if (text === '' && !closed) violations.push('garbage keeps a connection')
      })
    ])
    report.requests += size * 5
  }

  function cutOff (name: string, { text, closed, took }: Talk): void {
    if (!closed || took > CUT_OFF_MS) violations.push(`${name} holds its connection for ${took.toFixed(0)} ms`)
    if (text !== '' && !text.startsWith('HTTP/1.1 408 ')) violations.push(`${name} is answered ${text.slice(0, 100)}`)
  }

  /** Sends the beginning, then a byte at a time, until it is cut off. */
  async function drip (beginning: string): Promise<Talk> {
    let dripping: NodeJS.Timeout | undefined
    const talked = await talk(beginning, () => false, CUT_OFF_MS + 2_000, (socket) => {
      dripping = setInterval(() => { if (socket.writable) socket.write('x') }, 250)
    })
    clearInterval(dripping)
    talked.socket.destroy()
    return talked
  }

  /** Sends bytes and listens until there is enough, the other side closes, or time is up. The socket stays open. */
  async function talk (bytes: string | Buffer, enough: (text: string) => boolean, patience = 20_000, connected: (socket: Socket) => void = () => {}): Promise<Talk> {
    const socket = connect(service.port, '127.0.0.1')
    let began = performance.now()
    let text = ''
    let closed = false
    await new Promise<void>((resolve) => {
      let timer = setTimeout(resolve, CONNECTED_MS)
      const done = (): void => {
        clearTimeout(timer)
        resolve()
      }
      socket.setEncoding('latin1').on('data', (chunk: string) => {
        text += chunk
        if (enough(text)) done()
      })
      socket.on('error', () => {}).on('end', () => { closed = true }).on('close', () => {
        closed = true
        done()
      })
      socket.on('connect', () => {
        clearTimeout(timer)
        timer = setTimeout(resolve, patience)
        began = performance.now()
        socket.write(bytes)
        connected(socket)
      })
    })
    return { socket, text, closed, took: performance.now() - began }
  }
}

interface Talk { socket: Socket, text: string, closed: boolean, took: number }

const isAnswered = (text: string): boolean => text.includes('\r\n\r\n')

/** The Request-Ids of the answers, in their order. */
function answered (text: string): string[] {
  return [...text.matchAll(/^request-id: (.*)\r$/gmi)].map(([, id]) => id!)
}

/** A client that behaves: every answer is a good one, and comes soon. */
function visit ({ client }: Store): { leave: () => Promise<{ slowest: number, visits: number }> } {
  const leaving = new AbortController()
  const visiting = (async () => {
    let slowest = 0
    let visits = 0
    for (; !leaving.signal.aborted; visits += 2) {
      const replies = await Promise.all([
        client.send({ method: 'GET', path: '/pets' }),
        client.send({ method: 'POST', path: '/messages', body: { message: 'Hello' } })
      ])
      for (const { status, took, text } of replies) {
        if (status !== 200 && status !== 201) throw new Error(`a well-behaved client is answered ${status} ${text}`)
        slowest = Math.max(slowest, took)
      }
      await sleep(20)
    }
    return { slowest, visits }
  })()
  visiting.catch(() => {})
  return {
    async leave () {
      leaving.abort()
      return await visiting
    }
  }
}

export interface Measure { files: number, handles: number, heap: number }

export async function measure (service: Service): Promise<Measure> {
  const { heap = 0, handles = 0 } = await service.ask('memory')
  return { heap, handles, files: openFiles(service.pid) }
}

/** The service hears of closed connections one after the other, and closes its own to PostgreSQL when they were idle for 10 s. */
export async function settled (service: Service, before: Measure): Promise<Measure> {
  const deadline = Date.now() + 15_000
  for (;;) {
    const now = await measure(service)
    if (now.files <= before.files && now.handles <= before.handles) return now
    if (Date.now() > deadline) return now
    await sleep(200)
  }
}

/** Where the system does not say, there are none, before and after. */
function openFiles (pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length
  } catch {
    return 0
  }
}

function megabytes (bytes: number): string {
  return (bytes / 1024 / 1024).toFixed(1)
}
