import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { isReference } from '../fuzz/arbitraries.ts'
import { expandComponents } from '../support/expand-components.ts'
import { requestArbitrary, type Document, type FuzzRequest } from '../fuzz/requests.ts'
import { openDatabase } from '../../src/database/open-database.ts'
import { storedBytes } from '../support/stored-bytes.ts'
import type { ScenarioContext, Store } from './harness.ts'
import { openAccount, send, type Traffic } from './neighbour-traffic.ts'
import { residentOf } from './overload.ts'
import type { Report } from './report.ts'
import type { Service } from './service.ts'

/** Limits the memory of the process, whose heap has 512 MB. */
const MAX_RESIDENT_BYTES = 700 * 1024 * 1024

/** How far an account's count of what it stores may be from the sum over its rows, as a part of the sum. */
const MAX_DEVIATION = 0.1

/** Ends the wait for an answer that a fault holds back, or that is a stream. */
const PATIENCE_MS = 1_000

/** Ends the wait for an answer that must come, on a machine of any speed. */
const LONG_PATIENCE_MS = 60_000

/** The pause between two accounts that exceed every limit. */
const LIMITS_PAUSE_MS = 30_000

/** What the service answers to what is beyond its limits. */
const LIMITS = [
  '400 bad_request', '409 api_key_limit_reached', '409 fault_limit_reached', '409 snapshot_limit_reached',
  '409 stream_limit_reached', '409 webhook_limit_reached', '413 payload_too_large', '414 uri_too_long',
  '429 rate_limited', '431 headers_too_large'
]

/** An account opens a fault for so many of its requests, which hits two of them. */
const FAULT_EVERY = 20

const EFFECTS = [
  { type: 'delay', ms: 200 }, { type: 'refuse', status: 503 }, { type: 'reset' }, { type: 'lose_answer' },
  { type: 'replace_answer', status: 502 }, { type: 'truncate', bytes: 20 }, { type: 'trickle', bytesPerSecond: 2_000 },
  { type: 'corrupt', how: 'invalid_json' }
]

const STREAMS = 3

/** Ways to send a request, and how many of a hundred go so. */
const MANNERS: Array<[manner: Manner, percent: number]> = [
  ['whole', 85], ['changed', 5], ['cut', 5], ['slow', 3], ['unread', 2]
]

type Manner = 'whole' | 'changed' | 'cut' | 'slow' | 'unread'

interface Attacker { key: string, sent: number }

interface Storm {
  traffic: Traffic
  requests: FuzzRequest[]
  attackers: Attacker[]
  /** Answers by status and code. */
  answers: Map<string, number>
  /** The number of requests. */
  sent: number
  areLimitsMet: boolean
  isOver: () => boolean
}

/**
 * Sends valid, invalid, changed, cut, slow and unread requests of many accounts, a tenth of them with faults of the
 * lab, beside a polite account. The process must not end, must answer the polite account without errors in bounded
 * memory, and must refuse what is beyond each limit with the code of that limit. Afterwards, the service has counted
 * what each account stores.
 */
export async function storm ({ quick, report, freshUrl, start, openStore }: ScenarioContext): Promise<void> {
  const goal = quick ? { requests: 1_000, ms: 0 } : { requests: 1_000_000, ms: 600_000 }
  const url = await freshUrl()
  const service = await start({
    DATABASE_URL: url,
    DELIVERY: 'true',
    LAB: 'true',
    LOG_LEVEL: 'fatal',
    WEBHOOKS_ALLOW_PRIVATE: 'true',
    STREAMS_PER_ACCOUNT: String(STREAMS),
    RATE_LIMIT_FAILED_AUTH: '60',
    NODE_OPTIONS: '--max-old-space-size=512'
  })
  const traffic = { ports: [service.port] }
  const { body } = await send(traffic, 'GET', '/openapi.json', undefined)
  const document = expandComponents(body) as unknown as Document
  const began = performance.now()
  const state: Storm = {
    traffic,
    requests: fc.sample(requestArbitrary(document), quick ? 500 : 5_000),
    attackers: await Promise.all(Array.from({ length: quick ? 4 : 20 }, async () => await openAttacker(traffic))),
    answers: new Map(),
    sent: 0,
    areLimitsMet: false,
    isOver: () => service.exitReason() !== undefined ||
      (state.areLimitsMet && state.sent >= goal.requests && performance.now() - began >= goal.ms)
  }
  const victim = await openStore(() => service.port, { sockets: 4, pets: 0 })
  const watching = watch(service, victim, state)
  await Promise.all([
    ...Array.from({ length: quick ? 8 : 64 }, async (_, i) => { await attack(state, i % state.attackers.length) }),
    exceedLimits(state)
  ])
  const { resident, visits, slowest, failures } = await watching
  report.requests += state.sent
  report.rounds++
  const seconds = (performance.now() - began) / 1000
  const counts = [...state.answers].sort(([, a], [, b]) => b - a).map(([answer, count]) => `${answer}: ${count}`)
  report.notes.push(
    `${state.sent} requests in ${seconds.toFixed(0)} s, ${(resident / 1048576).toFixed(0)} MB; ${visits} requests ` +
      `of the polite account, the slowest ${slowest.toFixed(0)} ms`,
    `answers: ${counts.join(', ')}`
  )
  const exit = service.exitReason()
  if (exit !== undefined) report.violations.push(`the process ended with ${exit}`)
  if (failures.length > 0) report.violations.push(`${failures.length} failures of the polite account: ${failures[0]}`)
  if (resident > MAX_RESIDENT_BYTES) report.violations.push(`${(resident / 1048576).toFixed(0)} MB are resident`)
  for (const limit of LIMITS) if (!state.answers.has(limit)) report.violations.push(`no request was answered ${limit}`)
  if (state.answers.has('500 internal_error')) report.violations.push('a request is answered 500')
  await service.kill()
  await checkStoredBytes(url, report)
}

async function checkStoredBytes (url: string, { notes, violations }: Report): Promise<void> {
  const database = await openDatabase({ url, pool: 2, timeout: 20_000 })
  try {
    const accounts = await storedBytes(database)
    const wrong = accounts.filter(({ counted, actual }) => Math.abs(counted - actual) > MAX_DEVIATION * actual)
    const inexact = accounts.filter(({ counted, actual }) => counted !== actual)
    const sum = accounts.reduce((bytes, { actual }) => bytes + actual, 0)
    notes.push(`${accounts.length} accounts store ${sum} bytes; the counts of ${inexact.length} are not exact`)
    violations.push(...wrong.map(({ counted, actual }) => `an account that stores ${actual} bytes counts ${counted}`))
  } finally {
    await database.close()
  }
}

/** Exceeds each limit once, with one new account after the other. */
async function exceedLimits (state: Storm): Promise<void> {
  const many = async (count: number, ...request: Parameters<typeof bytesOf>): Promise<void> => {
    const bytes = bytesOf(...request)
    await Promise.all(Array.from({ length: count }, async () => {
      await exchange(state, bytes, 'whole', LONG_PATIENCE_MS)
    }))
  }
  do {
    const { key } = await openAttacker(state.traffic)
    await exchange(state, Buffer.from('NOISE\r\n\r\n'), 'whole', LONG_PATIENCE_MS)
    await many(1, key, 'GET', `/pets?${'x'.repeat(9_000)}`)
    await many(1, key, 'GET', '/pets', undefined, { 'x-long': 'x'.repeat(20_000) })
    await many(1, key, 'POST', '/categories', { name: 'x'.repeat(200_000) })
    await many(61, 'psk_unknown', 'GET', '/pets')
    await many(101, key, 'POST', '/account/keys', {})
    await many(101, key, 'POST', '/lab/faults', { operation: 'listWebhooks', effect: { type: 'reset' } })
    await many(21, key, 'POST', '/lab/snapshots', {})
    await many(21, key, 'POST', '/webhooks', { url: 'http://127.0.0.1:9/' })
    const stream = bytesOf(key, 'GET', '/events', undefined, { accept: 'text/event-stream' })
    const sockets = Array.from({ length: STREAMS }, () => connect(state.traffic.ports[0]!, '127.0.0.1'))
    await Promise.all(sockets.map(async (socket) => {
      socket.write(stream)
      await once(socket, 'data')
    }))
    await exchange(state, stream, 'whole', LONG_PATIENCE_MS)
    for (const socket of sockets) socket.destroy()
    state.areLimitsMet = true
    for (let ms = 0; ms < LIMITS_PAUSE_MS && !state.isOver(); ms += 100) await sleep(100)
  } while (!state.isOver())
}

async function openAttacker (traffic: Traffic): Promise<Attacker> {
  return { key: (await openAccount(traffic)).key, sent: 0 }
}

/** Reads and writes as a polite account, and measures the process, until the storm is over. */
async function watch (
  service: Service, { client }: Store, { isOver }: Storm
): Promise<{ resident: number, visits: number, slowest: number, failures: string[] }> {
  let [resident, visits, slowest] = [0, 0, 0]
  const failures: string[] = []
  while (!isOver()) {
    const replies = await Promise.all([
      client.send({ method: 'GET', path: '/categories?limit=5' }),
      client.send({ method: 'POST', path: '/categories', body: { name: 'Cats' } })
    ])
    for (const { status, text, took } of replies) {
      if (status !== 200 && status !== 201) failures.push(`${status} ${text}`)
      slowest = Math.max(slowest, took)
    }
    visits += replies.length
    if (service.exitReason() === undefined) resident = Math.max(resident, residentOf(service.pid))
    await sleep(20)
  }
  return { resident, visits, slowest, failures }
}

async function attack (state: Storm, index: number): Promise<void> {
  while (!state.isOver()) {
    const attacker = state.attackers[index]!
    attacker.sent++
    state.sent++
    if (attacker.sent % FAULT_EVERY === 0) {
      const effect = EFFECTS[attacker.sent / FAULT_EVERY % EFFECTS.length]
      await exchange(state, bytesOf(attacker.key, 'POST', '/lab/faults', { operation: '*', effect, times: 2 }), 'whole')
      continue
    }
    const request = state.requests[Math.floor(Math.random() * state.requests.length)]!
    const answer = await exchange(state, fuzzBytes(request, attacker.key), mannerOf(Math.random() * 100))
    // The account was deleted, or has revoked its key. A changed key is answered so, too.
    if (/^4(01|29)/.test(answer) && request.authorization === undefined && state.attackers[index] === attacker) {
      state.attackers[index] = await openAttacker(state.traffic).catch(() => attacker)
    }
  }
}

function mannerOf (percent: number): Manner {
  let rest = percent
  return MANNERS.find(([, share]) => (rest -= share) < 0)?.[0] ?? 'whole'
}

/** Sends the bytes of a request on a new connection. @returns the status and code of the answer, if one came */
async function exchange (
  { traffic, answers }: Storm, bytes: Buffer, manner: Manner, patience = PATIENCE_MS
): Promise<string> {
  const socket = connect(traffic.ports[0]!, '127.0.0.1')
  let text = ''
  await new Promise<void>((resolve) => {
    const end = (): void => {
      socket.destroy()
      resolve()
    }
    // Not the time-out of the socket, which each byte of a trickled body would extend.
    const late = setTimeout(end, patience)
    socket.on('error', () => {}).on('close', () => {
      clearTimeout(late)
      resolve()
    })
    socket.on('connect', () => { write(socket, bytes, manner, end) })
    if (manner !== 'unread') {
      socket.setEncoding('latin1').on('data', (chunk: string) => {
        text += chunk
        if (isWhole(text)) end()
      })
    }
  })
  const status = /^HTTP\/1\.1 (\d+)/.exec(text)?.[1]
  if (status === undefined) return ''
  const answer = `${status} ${/^\{"code":"(\w+)"/m.exec(text)?.[1] ?? ''}`.trim()
  answers.set(answer, (answers.get(answer) ?? 0) + 1)
  return answer
}

function write (socket: Socket, bytes: Buffer, manner: Manner, end: () => void): void {
  if (manner === 'whole') socket.write(bytes)
  else if (manner === 'unread') {
    socket.pause().write(bytes)
    setTimeout(end, 300)
  } else if (manner === 'cut') socket.write(bytes.subarray(0, Math.random() * bytes.length), end)
  else if (manner === 'changed') {
    const changed = Buffer.from(bytes)
    for (let i = 0; i < 3; i++) changed[Math.floor(Math.random() * bytes.length)] = Math.random() * 256
    socket.write(changed)
  } else {
    let sent = 0
    const timer = setInterval(() => {
      if (sent >= bytes.length || !socket.writable) return clearInterval(timer)
      socket.write(bytes.subarray(sent, sent += 40))
    }, 20)
  }
}

function isWhole (text: string): boolean {
  const head = text.indexOf('\r\n\r\n')
  if (head < 0) return false
  const length = /^content-length: (\d+)/im.exec(text.slice(0, head))?.[1]
  if (length !== undefined) return text.length >= head + 4 + Number(length)
  return text.endsWith('0\r\n\r\n') || / (204|304) /.test(text.slice(0, 14))
}

function bytesOf (
  key: string | undefined, method: string, target: string, body?: unknown, headers: Record<string, string> = {}
): Buffer {
  const payload = Buffer.isBuffer(body) ? body : Buffer.from(body === undefined ? '' : JSON.stringify(body))
  const fields = {
    host: 'petstore',
    ...key === undefined ? {} : { authorization: `Bearer ${key}` },
    ...payload.length === 0 ? {} : { 'content-type': 'application/json', 'content-length': String(payload.length) },
    ...headers
  }
  const head = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return Buffer.concat([Buffer.from(`${method} ${target} HTTP/1.1\r\n${head}\r\n`, 'latin1'), payload])
}

function fuzzBytes (
  { method, path, params, query, headers, authorization, raw, body }: FuzzRequest, key: string
): Buffer {
  const address = path.replace(/\{(\w+)\}/g, (_, name: string) => String(withIds(params[name])))
  const search = query.map(([name, value]) => `${name}=${String(withIds(value))}`).join('&')
  const payload = raw === undefined ? withIds(body) : Buffer.from(raw, 'latin1')
  const given = authorization == null ? {} : { authorization }
  const sentKey = authorization === undefined ? key : undefined
  return bytesOf(sentKey, method, search === '' ? address : `${address}?${search}`, payload, { ...headers, ...given })
}

/** Replaces references by small ids, of which an account owns some. */
function withIds (value: unknown): unknown {
  if (isReference(value)) return value.cursor === true ? (value.n + 1).toString(36) : value.n + 1
  if (Array.isArray(value)) return value.map(withIds)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, withIds(inner)]))
}
