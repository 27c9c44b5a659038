import { setMaxListeners } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { openReceiver, type Receiver } from '../support/receiver.ts'
import { residentOf } from './overload.ts'
import { statusOf, type Service } from './service.ts'
import type { ScenarioContext, Store } from './harness.ts'

/** What another account keeps beside an attack. The short form runs on busy machines, and only tells starvation. */
const PROMISES = {
  full: { share: 0.4, writeMs: 1_000, livezMs: 1_000, deliveryMs: 2_000 },
  quick: { share: 0.01, writeMs: 20_000, livezMs: 20_000, deliveryMs: 30_000 }
}

/** Limits the memory of the process, whose heap has 512 MB. */
const MAX_RESIDENT_BYTES = 700 * 1024 * 1024

/** Number of requests that the victim sends at a time. */
const VICTIM_WORKERS = 20

/** What a polite account sees in one phase. */
interface Measurement {
  /** Writes per second. */
  rate: number
  /** The 99th percentile of the time of a write, in ms. */
  p99: number
  /** The longest time of `/livez`, in ms. */
  livez: number
  /** The longest time until a delivery started, in ms. */
  delivery: number
  /** Answers with a status of 500 or more, or without one. */
  failures: string[]
}

interface Target {
  context: ScenarioContext
  service: Service
}

/** Runs until the signal aborts. */
type Attack = (stopped: AbortSignal) => Promise<unknown>

/** Each attack prepares what it needs, such as an account with large records, before the victim is measured. */
const ATTACKS: Record<string, (target: Target) => Promise<Attack>> = {
  'pipelined large pages, not read': async (target) => {
    const { context: { quick } } = target
    const key = await openAccount(target)
    const message = '😀'.repeat(10_000)
    await inParallel(10, 10, async () => { await send(target, 'POST', '/messages', key, { message }) })
    const pages = requests(300, 'GET', '/messages?limit=100', key)
    return async (stopped) => await occupy(target, quick ? 8 : 16, pages, stopped)
  },
  'connections that read nothing': async (target) => {
    const key = await openAccount(target)
    const message = '😀'.repeat(10_000)
    await inParallel(10, 10, async () => { await send(target, 'POST', '/messages', key, { message }) })
    const page = requests(1, 'GET', '/messages?limit=100', key)
    return async (stopped) => await occupy(target, 60, page, stopped)
  },
  'revocations beside many API keys': async (target) => {
    const key = await openAccount(target)
    await inParallel(10, 15, async () => { await send(target, 'POST', '/account/keys', key, {}) })
    const revocations = requests(20, 'DELETE', '/account/keys/1', key)
    return async (stopped) => await flood(target, 10, revocations, stopped)
  },
  'accounts that are opened, filled and deleted': async (target) => async (stopped) => {
    await Promise.all(Array.from({ length: 4 }, async () => {
      while (!stopped.aborted) {
        const key = await openAccount(target)
        await Promise.all([
          ...Array.from({ length: 9 }, async () => await send(target, 'POST', '/categories', key, { name: 'Dogs' })),
          send(target, 'DELETE', '/account', key)
        ])
      }
    }))
  },
  'webhooks that respond slowly': async (target) => {
    const { context: { quick, atEnd } } = target
    const receiver = await openReceiver({ teardown: atEnd }, (response) => {
      setTimeout(() => { response.writeHead(204).end() }, 14_000)
    })
    const keys = await inParallel(quick ? 10 : 20, 1, async () => {
      const key = await openAccount(target)
      await inParallel(20, 1, async () => { await send(target, 'POST', '/webhooks', key, { url: receiver.url }) })
      return key
    })
    receiver.secrets = []
    return async (stopped) => {
      while (!stopped.aborted) {
        await Promise.all(keys.map(async (key) => await send(target, 'POST', '/messages', key, { message: 'Hello' })))
        await sleep(200)
      }
    }
  },
  'sign-ups': async (target) => {
    const signUps = requests(1, 'POST', '/accounts', undefined, { name: 'A store' })
    return async (stopped) => await flood(target, 50, signUps, stopped)
  },
  'pipelined writes': async (target) => {
    const key = await openAccount(target)
    const writes = requests(400, 'POST', '/categories', key, { name: 'Dogs' })
    return async (stopped) => await flood(target, 20, writes, stopped)
  }
}

/**
 * Measures a polite account alone, beside an account that attacks, and afterwards. Whatever the attacker does, the
 * other keeps a share of its rate, and is answered soon and without errors, in bounded memory.
 */
export async function neighbours (context: ScenarioContext): Promise<void> {
  const { quick, report, freshUrl, start, openStore, atEnd } = context
  const seconds = quick ? 2 : 8
  const promise = PROMISES[quick ? 'quick' : 'full']
  const service = await start({
    DATABASE_URL: await freshUrl(),
    DELIVERY: 'true',
    WEBHOOKS_ALLOW_PRIVATE: 'true',
    LOG_LEVEL: 'fatal',
    SLOW_READER_MS: quick ? '3000' : '30000',
    NODE_OPTIONS: '--max-old-space-size=512'
  })
  const victim = await openStore(() => service.port, { sockets: VICTIM_WORKERS, pets: 0 })
  const receiver = await openReceiver({ teardown: atEnd })
  await victim.client.send({
    method: 'POST', path: '/webhooks', body: { url: receiver.url, events: ['message.created'] }
  })
  const measure = async (): Promise<Measurement> => await measureVictim(service, victim, receiver, seconds * 1000)
  // The first requests of a process compile code.
  await measure()
  for (const [name, prepare] of Object.entries(ATTACKS)) {
    const attack = await prepare({ context, service })
    const alone = await measure()
    const stop = new AbortController()
    // Each connection of an attack listens.
    setMaxListeners(0, stop.signal)
    const attacking = attack(stop.signal).catch((error: unknown) => error)
    await sleep(500)
    const beside = await measure()
    const resident = residentOf(service.pid)
    stop.abort()
    const failure = await attacking
    if (failure instanceof Error) report.violations.push(`${name}: the attack failed: ${failure.message}`)
    const after = await measure()

    const [aloneText, besideText, afterText] = [alone, beside, after].map(({ rate, p99, livez, delivery }) =>
      `${rate.toFixed(0)}/s, p99 ${p99.toFixed(0)} ms, /livez ${livez.toFixed(0)} ms, delivery ${delivery.toFixed(0)} ms`)
    report.notes.push(
      `${name}: alone ${aloneText}; beside it ${besideText}; afterwards ${afterText}; ` +
      `${(resident / 1048576).toFixed(0)} MB resident`)
    const check = (isKept: boolean, what: string): void => {
      if (!isKept) report.violations.push(`${name}: ${what}`)
    }
    check(service.exitReason() === undefined, `the process ended with ${service.exitReason()}`)
    for (const [phase, { failures }] of Object.entries({ alone, beside, after })) {
      check(failures.length === 0, `${failures.length} failures ${phase}, such as ${failures[0]}`)
    }
    check(beside.rate >= promise.share * alone.rate, `${(beside.rate / alone.rate).toFixed(2)} of the rate is left`)
    check(after.rate >= promise.share * alone.rate, `${(after.rate / alone.rate).toFixed(2)} of the rate afterwards`)
    check(beside.p99 <= promise.writeMs, `a write takes ${beside.p99.toFixed(0)} ms (p99)`)
    check(beside.livez <= promise.livezMs, `/livez takes ${beside.livez.toFixed(0)} ms`)
    check(beside.delivery <= promise.deliveryMs, `a delivery starts after ${beside.delivery.toFixed(0)} ms`)
    check(resident <= MAX_RESIDENT_BYTES, `${(resident / 1048576).toFixed(0)} MB are resident`)
    report.rounds++
  }
}

async function measureVictim (
  { port }: Service, { client }: Store, receiver: Receiver, ms: number
): Promise<Measurement> {
  const end = Date.now() + ms
  const times: number[] = []
  const failures: string[] = []
  const until = async (work: () => Promise<void>): Promise<void> => { while (Date.now() < end) await work() }
  const write = async (): Promise<void> => {
    const { status, took, text } = await client.send({ method: 'POST', path: '/categories', body: { name: 'Cats' } })
    times.push(took)
    if (status === 0 || status >= 500) failures.push(`${status} ${text}`)
  }
  let livez = 0
  const probe = async (): Promise<void> => {
    const began = performance.now()
    const status = await statusOf(port, '/livez', 30_000)
    livez = Math.max(livez, performance.now() - began)
    if (status !== 200) failures.push(`/livez is answered ${status}`)
    await sleep(100)
  }
  let delivery = 0
  const deliver = async (): Promise<void> => {
    const count = receiver.received.length
    const { status, text } = await client.send({ method: 'POST', path: '/messages', body: { message: 'Hello' } })
    if (status !== 201) failures.push(`a message is answered ${status} ${text}`)
    const began = performance.now()
    while (receiver.received.length === count && performance.now() < began + 30_000) await sleep(20)
    delivery = Math.max(delivery, performance.now() - began)
  }
  const began = performance.now()
  const writers = Array.from({ length: VICTIM_WORKERS }, async () => { await until(write) })
  await Promise.all([...writers, until(probe), until(deliver)])
  const rate = times.length / (performance.now() - began) * 1000
  const p99 = times.sort((a, b) => a - b)[Math.floor(times.length * 0.99)] ?? Infinity
  return { rate, p99, livez, delivery, failures }
}

async function inParallel<T> (workers: number, rounds: number, work: () => Promise<T>): Promise<T[]> {
  const results: T[] = []
  await Promise.all(Array.from({ length: workers }, async () => {
    for (let i = 0; i < rounds; i++) results.push(await work())
  }))
  return results
}

/** Opens an account. @returns its API key */
async function openAccount (target: Target): Promise<string> {
  const { apiKey } = await send(target, 'POST', '/accounts', undefined, { name: 'A store' }) as { apiKey: string }
  return apiKey
}

/** Sends one request, without the checks of a client, because the attacker shares its process with the victim. */
async function send (
  { service: { port } }: Target, method: string, path: string, key: string | undefined, body?: unknown
): Promise<unknown> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    headers: {
      ...key === undefined ? {} : { authorization: `Bearer ${key}` },
      ...body === undefined ? {} : { 'content-type': 'application/json' }
    },
    ...body === undefined ? {} : { body: JSON.stringify(body) }
  })
  const text = await response.text()
  return text === '' ? undefined : JSON.parse(text)
}

interface Requests { bytes: string, count: number }

/** Returns the bytes of pipelined requests. */
function requests (count: number, method: string, path: string, key: string | undefined, body?: unknown): Requests {
  const text = body === undefined ? '' : JSON.stringify(body)
  const request = [
    `${method} ${path} HTTP/1.1`,
    'Host: petstore',
    ...key === undefined ? [] : [`Authorization: Bearer ${key}`],
    ...body === undefined ? [] : ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(text)}`],
    '',
    text
  ].join('\r\n')
  return { bytes: request.repeat(count), count }
}

/** Sends requests on each connection again and again, the next ones when all answers have arrived. */
async function flood (
  target: Target, connections: number, { bytes, count }: Requests, stopped: AbortSignal
): Promise<void> {
  await repeat(target, connections, stopped, (socket) => {
    let answers = 0
    let tail = ''
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      answers += (tail + chunk).split('HTTP/1.1 ').length - 1
      tail = chunk.slice(-8)
      if (answers < count) return
      answers = 0
      socket.write(bytes)
    })
    socket.write(bytes)
  })
}

/** Sends requests on each connection, and reads no answer. */
async function occupy (target: Target, connections: number, { bytes }: Requests, stopped: AbortSignal): Promise<void> {
  await repeat(target, connections, stopped, (socket) => { socket.write(bytes) })
}

/** Keeps a number of connections open. */
async function repeat (
  { service: { port } }: Target, connections: number, stopped: AbortSignal, use: (socket: Socket) => void
): Promise<void> {
  await Promise.all(Array.from({ length: connections }, async () => {
    while (!stopped.aborted) {
      const socket = connect(port, '127.0.0.1')
      const stop = (): void => { socket.destroy() }
      stopped.addEventListener('abort', stop)
      socket.on('connect', () => { use(socket) }).on('error', () => {})
      await new Promise((resolve) => { socket.once('close', resolve) })
      stopped.removeEventListener('abort', stop)
      if (!stopped.aborted) await sleep(50)
    }
  }))
}
