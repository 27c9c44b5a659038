import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { openReceiver, type Receiver } from '../support/receiver.ts'
import type { ScenarioContext, Store } from './harness.ts'
import { COSTLY_ATTACKS } from './costly-attacks.ts'
import { ATTACKS, type Attack, type Target } from './neighbour-attacks.ts'
import { residentOf } from './overload.ts'
import { statusOf, type Service } from './service.ts'

/** What another account keeps beside an attack. The short form runs on busy machines, and only tells starvation. */
const PROMISES = {
  full: { share: 0.4, requestMs: 1_000, livezMs: 1_000, deliveryMs: 2_000 },
  // Strangers who keep the other process busy take its part of the machine as well.
  fullWithTwo: { share: 0.3, requestMs: 1_000, livezMs: 1_000, deliveryMs: 2_000 },
  // The connections of the worker that is killed, up to 750, arrive at the other one at once.
  fullWithKill: { share: 0.4, requestMs: 1_000, livezMs: 2_000, deliveryMs: 2_000 },
  quick: { share: 0.01, requestMs: 20_000, livezMs: 20_000, deliveryMs: 30_000 }
}

/** On a machine that is too slow for the promises without an attack, times may grow by this factor. */
const MAX_GROWTH = 3

/**
 * An attack beside which the victim misses a rate or a time is repeated, and must not cost it more than once: a machine
 * can lose its speed for seconds.
 */
const REPETITIONS = 2

/** Limits the memory of a process, whose heap has 512 MB. */
const MAX_RESIDENT_BYTES = 700 * 1024 * 1024

/** Number of writes that the victim sends at a time. */
const VICTIM_WORKERS = 20

/** Number of its connections: also one each for reads, messages and `/livez`. */
const VICTIM_CONNECTIONS = VICTIM_WORKERS + 3

/** Time in which a killed worker is replaced, and the new one compiles its code, perhaps without a core of its own. */
const RESTART_MS = 3_000

/** What a polite account sees in one phase. */
interface Measurement {
  /** Writes per second. */
  rate: number
  /** The 99th percentiles of the times of a write and of a read, in ms. */
  writeMs: number
  readMs: number
  /** The longest time of `/livez`, in ms. */
  livezMs: number
  /** The longest time until a delivery started, in ms. */
  deliveryMs: number
  /** Answers with a status of 500 or more, or without one. */
  failures: string[]
  /** The number of those without a status. */
  lost: number
}

type Time = 'writeMs' | 'readMs' | 'livezMs' | 'deliveryMs'

interface Victim { store: Store, receiver: Receiver, services: Service[], ms: number }

/** The processes that serve: so many services of so many workers each, of which one is killed in each attack. */
interface Processes { services: number, workers: number }

/**
 * Measures a polite account alone, beside an account that attacks, and afterwards. Whatever the attacker does, the
 * other keeps a share of its rate, and is answered soon and without errors, in bounded memory. On PostgreSQL, the
 * attacks also meet two processes, of which the victim uses one. The regular expression `NEIGHBOURS` selects attacks by
 * their labels, such as 'N6 webhooks that respond after 14 s, 2 processes'. With `PROCESSES`, they meet the workers of
 * one service, of which one is killed beside each attack.
 */
export async function neighbours (context: ScenarioContext): Promise<void> {
  const { processes: workers, quick, freshUrl } = context
  if (workers > 1) return await attackAll(context, await freshUrl(), { services: 1, workers })
  const url = await freshUrl()
  await attackAll(context, url, { services: 1, workers: 0 })
  if (!url.startsWith('file:') && !quick) await attackAll(context, await freshUrl(), { services: 2, workers: 0 })
}

function labelOf ({ services, workers }: Processes): string {
  return workers > 0 ? `PROCESSES=${workers}` : `${services} process${services === 1 ? '' : 'es'}`
}

async function attackAll (context: ScenarioContext, databaseUrl: string, processes: Processes): Promise<void> {
  const { quick, report, start, openStore, atEnd } = context
  const wanted = new RegExp(process.env['NEIGHBOURS'] ?? '')
  const attacks = Object.entries({ ...ATTACKS, ...COSTLY_ATTACKS })
    .map(([name, prepare]) => ({ label: `${name}, ${labelOf(processes)}`, prepare }))
    .filter(({ label }) => wanted.test(label))
  if (attacks.length === 0) return
  const services: Service[] = []
  for (let i = 0; i < processes.services; i++) {
    services.push(await start({
      DATABASE_URL: databaseUrl,
      DELIVERY: 'true',
      LAB: 'true',
      WEBHOOKS_ALLOW_PRIVATE: 'true',
      LOG_LEVEL: 'fatal',
      SLOW_READER_MS: quick ? '3000' : '30000',
      ...processes.workers > 0 ? { PROCESSES: String(processes.workers) } : {},
      NODE_OPTIONS: '--max-old-space-size=512'
    }))
  }
  const store = await openStore(() => services[0]!.port, { sockets: VICTIM_WORKERS + 4, pets: 0 })
  const receiver = await openReceiver({ teardown: atEnd })
  await store.client.send({
    method: 'POST', path: '/webhooks', body: { url: receiver.url, events: ['message.created'] }
  })
  const victim: Victim = { store, receiver, services, ms: quick ? 150 : 8_000 }
  // The first requests of a process compile code.
  await measure(victim)
  let alone = await measure(victim)
  for (const { label, prepare } of attacks) {
    const target: Target = { context, databaseUrl, ports: services.map(({ port }) => port) }
    let hasMissed = false
    for (let attempt = 0; attempt === 0 || (hasMissed && attempt <= REPETITIONS); attempt++) {
      const attack = await prepare(target)
      // In the full form, a slow loss of speed must not become the measure of the next attack.
      if (!quick) {
        alone = await measureWithKill(victim)
        if (processes.workers > 0) await sleep(RESTART_MS)
      }
      const { after, broken, missed } = await measureBeside(context, label, victim, attack, alone)
      alone = after
      report.rounds++
      // Before those that the client reports, of which there can be many.
      report.violations.unshift(...broken, ...hasMissed ? missed : [])
      hasMissed ||= missed.length > 0
      for (const service of services) if (service.exitReason() !== undefined) await service.start()
    }
  }
  for (const service of services) await service.kill()
}

/** What the victim sees after an attack, and what of the promises is broken, or missed by a rate or a time. */
interface Outcome { after: Measurement, broken: string[], missed: string[] }

/** Measures the victim beside an attack, and afterwards. */
async function measureBeside (
  context: ScenarioContext, name: string, victim: Victim, attack: Attack, alone: Measurement
): Promise<Outcome> {
  const { quick, report } = context
  const { services } = victim
  const hasWorkers = services.some((service) => service.workers().length > 0)
  const promise = PROMISES[
    quick ? 'quick' : hasWorkers ? 'fullWithKill' : services.length > 1 ? 'fullWithTwo' : 'full'
  ]
  const stop = new AbortController()
  // Each connection of an attack listens.
  setMaxListeners(0, stop.signal)
  const attacking = attack(stop.signal).catch((error: unknown) => error)
  await sleep(quick ? 100 : 500)
  const beside = await measureWithKill(victim)
  const exits = services.flatMap((service) => service.exitReason() ?? [])
  const pids = services.flatMap(({ pid, workers }) => [pid, ...workers()])
  const resident = exits.length > 0 ? 0 : Math.max(...pids.map(residentOf))
  stop.abort()
  const failure = await attacking
  if (hasWorkers) await sleep(RESTART_MS)
  const after = await measure(victim, !hasWorkers)

  report.notes.push(
    `${name}: alone ${describe(alone)}; beside ${describe(beside)}; afterwards ${describe(after)}; ` +
    `${(beside.rate / alone.rate).toFixed(2)} of the rate, ${(resident / 1048576).toFixed(0)} MB`)
  const broken: string[] = []
  const missed: string[] = []
  const check = (isKept: boolean, what: string, list = broken): void => {
    if (!isKept) list.push(`${name}: ${what}`)
  }
  const checkRate = ({ rate }: Measurement, what: string): void => {
    check(rate >= promise.share * alone.rate, `${(rate / alone.rate).toFixed(2)} of the rate ${what}`, missed)
  }
  const checkTime = (time: Time, promised: number, what: string): void => {
    const isKept = beside[time] <= Math.max(promised, MAX_GROWTH * alone[time])
    check(isKept, `${what} ${beside[time].toFixed(0)} ms, and ${alone[time].toFixed(0)} ms alone`, missed)
  }
  // An attack may fail with the process that it stopped.
  check(!(failure instanceof Error) || exits.length > 0 || hasWorkers, `the attack failed: ${String(failure)}`)
  check(exits.length === 0, `the process ended with ${exits.join()}`)
  for (const [phase, { failures, lost }] of Object.entries({ alone, beside, afterwards: after })) {
    // A killed worker takes the request in flight on each of its connections with it.
    const isKill = hasWorkers && phase !== 'afterwards' && failures.length === lost && lost <= VICTIM_CONNECTIONS
    check(failures.length === 0 || isKill, `${failures.length} failures ${phase}, such as ${failures[0]}`)
  }
  checkRate(beside, 'is left')
  checkRate(after, 'is left afterwards')
  checkTime('writeMs', promise.requestMs, 'a write takes (p99)')
  checkTime('readMs', promise.requestMs, 'a read takes (p99)')
  checkTime('livezMs', promise.livezMs, '/livez takes')
  checkTime('deliveryMs', promise.deliveryMs, 'a delivery starts after')
  check(resident <= MAX_RESIDENT_BYTES, `${(resident / 1048576).toFixed(0)} MB are resident`)
  return { after, broken, missed }
}

/** Measures while a worker is killed, if there are workers: alone as well, so that the kill is no part of an attack. */
async function measureWithKill (victim: Victim): Promise<Measurement> {
  const [worker] = victim.services.flatMap((service) => service.workers())
  if (worker === undefined) return await measure(victim)
  const killing = sleep(victim.ms / 2).then(() => { process.kill(worker, 'SIGKILL') })
  // What a killed worker was delivering waits for up to 45 s, until its lease expires: no measure of an attack.
  const measurement = await measure(victim, false)
  await killing
  return measurement
}

function describe ({ rate, writeMs, readMs, livezMs, deliveryMs }: Measurement): string {
  const [write, read, livez, delivery] = [writeMs, readMs, livezMs, deliveryMs].map((ms) => `${ms.toFixed(0)} ms`)
  return `${rate.toFixed(0)} writes/s, p99 ${write}, read ${read}, /livez ${livez}, delivery ${delivery}`
}

async function measure (
  { store: { client }, receiver, services, ms }: Victim, waitsForDeliveries = true
): Promise<Measurement> {
  const end = Date.now() + ms
  const times: Record<'write' | 'read', number[]> = { write: [], read: [] }
  const failures: string[] = []
  let lost = 0
  const fail = (what: string, status: number): void => {
    failures.push(what)
    if (status === 0) lost++
  }
  const until = async (work: () => Promise<void>): Promise<void> => { while (Date.now() < end) await work() }
  const request = async (kind: 'write' | 'read'): Promise<void> => {
    const { status, took, text } = await client.send(kind === 'write'
      ? { method: 'POST', path: '/categories', body: { name: 'Cats' } }
      : { method: 'GET', path: '/categories?limit=5' })
    times[kind].push(took)
    if (status === 0 || status >= 500) fail(`${kind}: ${status} ${text}`, status)
    // A service that ended refuses at once.
    if (status === 0) await sleep(50)
  }
  let livezMs = 0
  const probe = async ({ port }: Service): Promise<void> => {
    const began = performance.now()
    const status = await statusOf(port, '/livez', 30_000)
    livezMs = Math.max(livezMs, performance.now() - began)
    if (status !== 200) fail(`/livez is answered ${status}`, status)
    await sleep(100)
  }
  let deliveryMs = 0
  const deliver = async (): Promise<void> => {
    const count = receiver.received.length
    const { status, text } = await client.send({ method: 'POST', path: '/messages', body: { message: 'Hello' } })
    if (status !== 201) fail(`a message is answered ${status} ${text}`, status)
    if (status !== 201 || !waitsForDeliveries) return await sleep(50)
    const began = performance.now()
    while (receiver.received.length === count && performance.now() < began + 30_000) await sleep(20)
    deliveryMs = Math.max(deliveryMs, performance.now() - began)
  }
  const began = performance.now()
  const writers = Array.from({ length: VICTIM_WORKERS }, async () => {
    await until(async () => { await request('write') })
  })
  await Promise.all([
    ...writers,
    until(async () => { await request('read') }),
    until(deliver),
    ...services.map(async (service) => { await until(async () => { await probe(service) }) })
  ])
  const rate = times.write.length / (performance.now() - began) * 1000
  return { rate, writeMs: p99(times.write), readMs: p99(times.read), livezMs, deliveryMs, failures, lost }
}

function p99 (times: number[]): number {
  return times.sort((a, b) => a - b)[Math.floor(times.length * 0.99)] ?? Infinity
}
