import { randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Service } from './service.ts'
import type { ScenarioContext, Store } from './harness.ts'

/** Longer in the short form, because this setting also limits the start of the service on a busy machine. */
const REQUEST_TIMEOUT_MS = { full: 2_000, quick: 10_000 }

/** Limits the life of a slow sender's connection. Node checks once a second, and the machine can be busy. */
const DISCONNECT_DELAY_MS = 4_000

/** Limits the wait of thousands of simultaneous connections. The system repeats a lost SYN after 1, 3 and 7 s. */
const CONNECT_TIMEOUT_MS = 30_000

/** Limits the wait of a well-behaved client meanwhile. */
const MAX_WAIT_MS = 3_000

const MAX_HEAP_GROWTH_BYTES = 10 * 1024 * 1024

/** Opens idle, slow, broken and hostile connections. They must leak nothing and must not delay other clients. */
export async function connections ({
  quick,
  slack,
  report,
  freshUrl,
  start,
  openStore
}: ScenarioContext): Promise<void> {
  const requestTimeoutMs = REQUEST_TIMEOUT_MS[quick ? 'quick' : 'full']
  const disconnectTimeoutMs = requestTimeoutMs + slack * DISCONNECT_DELAY_MS
  const settings = { DATABASE_URL: await freshUrl(), REQUEST_TIMEOUT_MS: String(requestTimeoutMs) }
  const service = await start(settings, { preload: true })
  const store = await openStore(() => service.port, { sockets: 4 })
  const { violations, notes } = report

  // The first connection of each kind fills caches and compiles code. That memory stays and is no leak.
  await openHostileConnections(quick ? 20 : 100)
  const warmUp = startWellBehavedClient(store)
  await sleep(500)
  await warmUp.stop()
  const before = await measure(service)

  const client = startWellBehavedClient(store)
  const idle = quick ? 200 : 2_000
  const sockets = await Promise.all(
    Array.from({ length: idle }, async () => await exchange('GET /livez HTTP/1.1\r\nHost: pets\r\n\r\n', isAnswered))
  )
  const unanswered = sockets.filter(({ text }) => !text.startsWith('HTTP/1.1 200'))
  for (const { text, closed, took } of unanswered.slice(0, 3)) {
    const end = closed ? ' and closed' : ''
    violations.push(`an idle connection is answered '${text.slice(0, 100)}'${end} after ${took.toFixed(0)} ms`)
  }
  if (unanswered.length > 0) violations.push(`${unanswered.length} of ${idle} connections were not answered`)
  for (let round = 0; round < (quick ? 1 : 5); round++) {
    await openHostileConnections(quick ? 50 : 500)
    report.rounds++
  }
  const { slowest, visits } = await client.stop()
  for (const { socket } of sockets) socket.destroy()
  if (slowest > slack * MAX_WAIT_MS) violations.push(`a well-behaved client waited ${slowest.toFixed(0)} ms`)

  const after = await waitForRelease(service, before)
  const [heapBefore, heapAfter] = [megabytes(before.heap), megabytes(after.heap)]
  notes.push(
    `${idle} idle connections; ${visits} requests of a well-behaved client, the slowest ${slowest.toFixed(0)} ms`,
    `open files ${before.files} → ${after.files}, handles ${before.handles} → ${after.handles}, ` +
      `heap ${heapBefore} → ${heapAfter} MB`
  )
  if (after.files > before.files + 2) violations.push(`${before.files} open files before, ${after.files} after`)
  if (after.handles > before.handles + 2) {
    violations.push(`${before.handles} handles before, ${after.handles} after`)
  }
  if (after.heap > before.heap + MAX_HEAP_GROWTH_BYTES) {
    violations.push(`the heap grew from ${heapBefore} to ${heapAfter} MB`)
  }

  async function openHostileConnections (size: number): Promise<void> {
    const authorization = `Authorization: Bearer ${store.key}`
    const post = `POST /messages HTTP/1.1\r\nHost: pets\r\n${authorization}\r\nContent-Type: application/json\r\n`
    const many = async (attacker: (i: number) => Promise<void>): Promise<void> => {
      await Promise.all(
        Array.from({ length: size }, async (_, i) => {
          await attacker(i)
        })
      )
    }
    await Promise.all([
      many(async () => {
        checkDisconnected('a slow head', await sendSlowly('GET /pets HTTP/1.1\r\nHost: pets\r\nX-Slow: '))
      }),
      many(async () => {
        checkDisconnected('a slow body', await sendSlowly(`${post}Content-Length: 1000\r\n\r\n{"message": "`))
      }),
      many(async () => {
        const half = `${post}Content-Length: 100000\r\n\r\n${'x'.repeat(50_000)}`
        const { socket } = await exchange(half, () => false, 20)
        socket.resetAndDestroy()
      }),
      many(async (i) => {
        if (i % 10 > 0) return
        const ids = Array.from({ length: 20 }, (_, n) => `pipelined-${i}-${n}`)
        const requests = ids.map(
          (id) => `GET /pets HTTP/1.1\r\nHost: pets\r\nRequest-Id: ${id}\r\n${authorization}\r\n\r\n`
        )
        const isComplete = (text: string): boolean => requestIdsOf(text).length === ids.length
        const { socket, text } = await exchange(requests.join(''), isComplete, slack * 2 * MAX_WAIT_MS)
        socket.destroy()
        const answered = requestIdsOf(text).join()
        if (answered !== ids.join()) violations.push(`pipelined requests were answered in the order ${answered}`)
      }),
      many(async () => {
        const garbage = Buffer.concat([randomBytes(200), Buffer.from('\r\n\r\n')])
        const { socket, text, closed } = await exchange(garbage, isAnswered, disconnectTimeoutMs)
        socket.destroy()
        if (text !== '' && !/^HTTP\/1\.1 4(00|08|31) /.test(text)) {
          violations.push(`garbage is answered ${text.slice(0, 100)}`)
        }
        if (text === '' && !closed) violations.push('a connection that sent garbage stays open')
      })
    ])
    report.requests += size * 5
  }

  function checkDisconnected (name: string, { text, closed, took }: Exchange): void {
    if (!closed || took > disconnectTimeoutMs) {
      violations.push(`${name} keeps its connection for ${took.toFixed(0)} ms`)
    }
    if (text !== '' && !text.startsWith('HTTP/1.1 408 ')) {
      violations.push(`${name} is answered ${text.slice(0, 100)}`)
    }
  }

  /** Sends the beginning of a request, then a byte at a time, until the service closes the connection. */
  async function sendSlowly (beginning: string): Promise<Exchange> {
    let timer: NodeJS.Timeout | undefined
    const exchanged = await exchange(
      beginning,
      () => false,
      disconnectTimeoutMs + 2_000,
      (socket) => {
        timer = setInterval(() => {
          if (socket.writable) socket.write('x')
        }, 250)
      }
    )
    clearInterval(timer)
    exchanged.socket.destroy()
    return exchanged
  }

  /** Sends bytes and reads until the answer is complete, the service closes, or the time is up. It keeps the socket. */
  async function exchange (
    bytes: string | Buffer,
    isComplete: (text: string) => boolean,
    timeoutMs = slack * 20_000,
    onConnect: OnConnect = () => {}
  ): Promise<Exchange> {
    const socket = connect(service.port, '127.0.0.1')
    let began = performance.now()
    let text = ''
    let closed = false
    await new Promise<void>((resolve) => {
      let timer = setTimeout(resolve, slack * CONNECT_TIMEOUT_MS)
      const done = (): void => {
        clearTimeout(timer)
        resolve()
      }
      socket.setEncoding('latin1').on('data', (chunk: string) => {
        text += chunk
        if (isComplete(text)) done()
      })
      socket
        .on('error', () => {})
        .on('end', () => {
          closed = true
        })
        .on('close', () => {
          closed = true
          done()
        })
      socket.on('connect', () => {
        clearTimeout(timer)
        timer = setTimeout(resolve, timeoutMs)
        began = performance.now()
        socket.write(bytes)
        onConnect(socket)
      })
    })
    return { socket, text, closed, took: performance.now() - began }
  }
}

type OnConnect = (socket: Socket) => void

interface Exchange { socket: Socket, text: string, closed: boolean, took: number }

const isAnswered = (text: string): boolean => text.includes('\r\n\r\n')

/** Returns the Request-Ids of the answers in their order. */
function requestIdsOf (text: string): string[] {
  return [...text.matchAll(/^request-id: (.*)\r$/gmi)].map(([, id]) => id!)
}

interface WellBehavedClient {
  stop: () => Promise<{ slowest: number, visits: number }>
}

/** Starts a client that reads and writes in turns. It fails at any answer but success, and measures the slowest. */
function startWellBehavedClient ({ client }: Store): WellBehavedClient {
  const stopped = new AbortController()
  const visiting = (async () => {
    let slowest = 0
    let visits = 0
    for (; !stopped.signal.aborted; visits += 2) {
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
    async stop () {
      stopped.abort()
      return await visiting
    }
  }
}

export interface Measure { files: number, handles: number, heap: number }

export async function measure (service: Service): Promise<Measure> {
  const { heap = 0, handles = 0 } = await service.ask('memory')
  return { heap, handles, files: openFiles(service.pid) }
}

/**
 * Waits until files and handles are back at their earlier numbers. The service sees closed connections one after the
 * other, and closes its own connections to PostgreSQL after 10 s without use.
 */
export async function waitForRelease (service: Service, before: Measure): Promise<Measure> {
  const deadline = Date.now() + 15_000
  for (;;) {
    const now = await measure(service)
    if (now.files <= before.files && now.handles <= before.handles) return now
    if (Date.now() > deadline) return now
    await sleep(200)
  }
}

/** Counts the open files of a process. On systems without /proc it returns 0, before and after. */
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
