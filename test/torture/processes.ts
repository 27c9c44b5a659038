import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from './client.ts'
import { followFeed, writeOutsideLedger } from './feed.ts'
import type { ScenarioContext, Store } from './harness.ts'
import { openAccount, send, type Traffic } from './neighbour-traffic.ts'
import { repeatWrites, verifyStore } from './verify.ts'
import { newOrder, isUndecided, startWorkload } from './workload.ts'

/** Limits the time until the other processes refuse a key that one process revoked. */
const REVOCATION_TIMEOUT_MS = 5_000

/** Runs three processes on one PostgreSQL database behind one address. They must be as correct as one. */
export async function processes (context: ScenarioContext): Promise<void> {
  const { quick, report, freshUrl, start, openStore, client, atEnd } = context
  const url = await freshUrl()
  const settings = { DATABASE_URL: url, LAB: 'true' }
  const services = [await start(settings)]
  services.push(...await Promise.all([start(settings), start(settings)]))
  const balancer = await startLoadBalancer(services.map(({ port }) => port), atEnd)
  const [orders, units, seconds] = quick ? [300, 75, 3] : [2000, 500, 30]

  // More orders than units arrive at once. The service must place exactly one for each unit.
  const shop = await openStore(() => balancer, { sockets: quick ? 100 : 600, pets: 1, units })
  const placed = await placeOrders(shop, orders)
  if (placed !== units) report.violations.push(`${orders} orders for ${units} units: ${placed} were placed`)
  await verifyStore(url, shop, report)
  report.rounds++

  // Clients write all kinds at once to few pets, some requests twice at the same moment, while others walk the lists.
  const store = await openStore(() => balancer, { sockets: 200, pets: 3, units: 500 })
  await placeOrders(store, 60)
  const feed = await followFeed(store, services.map(({ port }) => port), context)
  const load = startWorkload(store, { workers: 48, retry: true, twice: true })
  const end = Date.now() + seconds * 1000
  const otherWrites = writeOutsideLedger(store, end)
  const placedOrders = [...store.ledger.orders.values()]
    .flatMap(({ id, acknowledged }) => acknowledged === true ? [id!] : [])
  const walkers = [
    walkList(store.client, '/store/orders?limit=7', placedOrders, end, report.violations),
    walkList(store.client, '/store/orders?limit=9&sort=-id', placedOrders, end, report.violations),
    walkList(store.client, '/pets?limit=11', store.pets, end, report.violations)
  ]
  const walks = (await Promise.all(walkers)).reduce((sum, count) => sum + count, 0)
  await otherWrites
  const lost = await load.stop()
  if (lost > 0) report.violations.push(`${lost} clients got no answer`)
  await feed.compare()
  await repeatWrites(store, report, 300)
  const clients = services.map(({ port }) => client(() => port, { key: store.key }))
  await sendSameKeyToAll(store, clients, report.violations)
  await verifyStore(url, store, report)
  report.rounds++

  const latest = await revokeEverywhere(store, services.map(({ port }) => port), context)
  report.rounds++

  await recordAndLimitEverywhere(services.map(({ port }) => port), context)
  report.rounds++
  const statuses = new Map<string, number>()
  for (const { status, headers, body } of load.replies) {
    const name = `${body?.code ?? status}${headers['idempotency-replayed'] === undefined ? '' : ' replayed'}`
    statuses.set(name, (statuses.get(name) ?? 0) + 1)
  }
  report.notes.push(`${placed} of ${orders} orders placed for ${units} units; ${walks} walks through lists; ` +
    `all processes refused a revoked key after ${latest} ms`)
  report.notes.push([...statuses].map(([name, count]) => `${name}: ${count}`).join(', '))
}

/** Sends orders for one unit each, all at once. @returns the number of placed orders */
async function placeOrders ({ client, ledger, pets }: Store, count: number): Promise<number> {
  const writes = Array.from({ length: count }, (_, i) => newOrder(pets[i % pets.length]!, 1, `burst-${pets[0]}-${i}`))
  const statuses = await Promise.all(writes.map(async (write) => {
    for (;;) {
      const reply = await client.send({ ...write, headers: { 'idempotency-key': write.key } })
      if (isUndecided(reply)) {
        await sleep(50)
        continue
      }
      ledger.record(write, reply)
      return reply.status
    }
  }))
  return statuses.filter((status) => status === 201).length
}

/**
 * Walks a list again and again until a time. Each walk must show the lasting records exactly once and no record twice.
 * After that time, it ends as soon as it has shown those: the last page may recede as fast as it comes.
 * @returns the number of walks
 */
async function walkList (
  client: Client, first: string, lasting: Array<number | string>, end: number, violations: string[]
): Promise<number> {
  let walks = 0
  for (; Date.now() < end; walks++) {
    const seen = new Map<number | string, number>()
    const isOver = (): boolean => Date.now() >= end && lasting.every((id) => seen.has(id))
    for (let next: string | undefined = first; next !== undefined && !isOver();) {
      const { status, body, headers } = await client.send({ method: 'GET', path: next })
      if (status !== 200) {
        violations.push(`${next} is answered ${status}`)
        break
      }
      for (const { id } of body as Array<{ id: number }>) seen.set(id, (seen.get(id) ?? 0) + 1)
      next = /<([^>]*)>; rel="next"/.exec(String(headers.link))?.[1]
    }
    for (const id of lasting) if (!seen.has(id)) violations.push(`a walk of ${first} missed ${id}`)
    for (const [id, times] of seen) if (times > 1) violations.push(`a walk of ${first} showed ${id} ${times} times`)
  }
  return walks
}

/** Sends each request to every process at the same moment. It must have one effect and one answer. */
async function sendSameKeyToAll (
  { ledger, categoryId, client }: Store, clients: Client[], violations: string[]
): Promise<void> {
  await Promise.all(Array.from({ length: 40 }, async (_, i) => {
    const label = `everywhere ${i}`
    const body = { name: label, categoryId }
    const write = { kind: 'pet' as const, label, key: `everywhere-${i}`, method: 'POST', path: '/pets', body }
    const call = { ...write, headers: { 'idempotency-key': write.key } }
    const replies = (await Promise.all(clients.map(async ({ send }) => await send(call))))
      .filter((reply) => !isUndecided(reply))
    const reply = replies[0] ?? await client.send(call)
    ledger.record(write, reply)
    const texts = replies.map(({ status, text }) => `${status} ${text}`)
    if (new Set(texts).size > 1) violations.push(`one request was answered ${texts.join(' and ')}`)
    const done = replies.filter(({ headers }) => headers['idempotency-replayed'] === undefined).length
    if (replies.length > 0 && done > 1) violations.push(`one request was executed ${done} times`)
  }))
}

/** Revokes a key in the first process. @returns the time in ms until all processes refused it */
async function revokeEverywhere ({ client }: Store, ports: number[], context: ScenarioContext): Promise<number> {
  const { violations } = context.report
  const timeout = context.slack * REVOCATION_TIMEOUT_MS
  const { body: { id, apiKey } } = await client.send({ method: 'POST', path: '/account/keys', body: {} })
  const clients = ports.map((port) => context.client(() => port, { key: apiKey }))
  const ask = async ({ send }: Client): Promise<number> => (await send({ method: 'GET', path: '/account' })).status
  for (const each of clients) if (await ask(each) !== 200) violations.push('a new key does not work everywhere')
  const first = context.client(() => ports[0]!, { key: apiKey })
  const revocation = await first.send({ method: 'DELETE', path: `/account/keys/${id}` })
  if (revocation.status !== 204) violations.push('the key cannot be revoked')
  const revoked = Date.now()
  if (await ask(clients[0]!) !== 401) violations.push('a revoked key still works in the process that revoked it')
  for (;;) {
    const statuses = await Promise.all(clients.map(ask))
    const after = Date.now() - revoked
    if (statuses.every((status) => status === 401)) return after
    if (after > timeout) {
      violations.push(`a revoked key is answered ${statuses.join(', ')} after ${after} ms`)
      return after
    }
    await sleep(100)
  }
}

/** Requests that an account sends to each process at once while its journal is on, and how many its limit lets in. */
const RECORDED = 33
const ALLOWED = 40

/** Records and limits the requests of one account to all processes. The journal has each of them once. */
async function recordAndLimitEverywhere (ports: number[], { slack, report }: ScenarioContext): Promise<void> {
  const processes = ports.map((port) => ({ ports: [port] }))
  const [first] = processes as [Traffic]
  const { key } = await openAccount(first)
  const limits = { requests: ALLOWED, windowSeconds: 3_600, per: 'account', fields: 'ietf', retryAfter: 'none' }
  await send(first, 'PUT', '/lab/journal', key, { keep: 10_000 })
  await send(first, 'PUT', '/lab/limits', key, limits)
  // The first request that is counted shows that its process knows of both.
  for (const process of processes) {
    while (!(await send(process, 'GET', '/categories', key)).headers.has('ratelimit')) await sleep(50)
  }
  const sent: string[] = []
  await Promise.all(processes.flatMap((process, number) => Array.from({ length: RECORDED }, async (_, i) => {
    const path = `/pets?limit=${number * RECORDED + i + 1}`
    sent.push(`${path} ${(await send(process, 'GET', path, key)).status}`)
  })))
  report.requests += sent.length
  const allowed = processes.length + sent.filter((request) => request.endsWith(' 200')).length
  if (allowed !== ALLOWED) report.violations.push(`a limit of ${ALLOWED} requests let ${allowed} in`)

  const recorded: string[] = []
  const deadline = Date.now() + slack * 2_000
  for (let after = 0; recorded.length < sent.length && Date.now() < deadline;) {
    const { body } = await send(first, 'GET', `/lab/requests?limit=100&after=${after}`, key)
    const page = body as Array<{ id: number, path: string, status: number }>
    after = page.at(-1)?.id ?? after
    recorded.push(...page.flatMap(({ path, status }) => path === '/categories' ? [] : [`${path} ${status}`]))
  }
  if (recorded.sort().join() !== sent.sort().join()) {
    const missing = sent.filter((request) => !recorded.includes(request)).length
    report.violations.push(`the journal has ${recorded.length} records of ${sent.length} requests, without ${missing}`)
  }
}

/** Opens one port that forwards each new connection to the next of several ports. */
async function startLoadBalancer (ports: number[], atEnd: ScenarioContext['atEnd']): Promise<number> {
  let next = 0
  const server = createServer((client) => {
    const service = connect(ports[next++ % ports.length]!, '127.0.0.1')
    client.pipe(service).pipe(client)
    client.on('error', () => { service.destroy() }).on('close', () => { service.destroy() })
    service.on('error', () => { client.destroy() }).on('close', () => { client.destroy() })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(() => { server.close() })
  return (server.address() as AddressInfo).port
}
