import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from './client.ts'
import { followFeed, restless } from './feed.ts'
import type { Stage, Store } from './harness.ts'
import { repeat, verify } from './verify.ts'
import { anOrder, isUndecided, startWorkload } from './workload.ts'

/** A key that was revoked in one process ends in the others within this, in ms. */
const REVOKED_MS = 5_000

/** Three processes on one PostgreSQL, behind one address: as correct as one. */
export async function processes (stage: Stage): Promise<void> {
  const { quick, report, freshUrl, start, openStore, client, atEnd } = stage
  const url = await freshUrl()
  const services = [await start({ DATABASE_URL: url })]
  services.push(...await Promise.all([start({ DATABASE_URL: url }), start({ DATABASE_URL: url })]))
  const balancer = await balance(services.map(({ port }) => port), atEnd)
  const [orders, units, seconds] = quick ? [600, 150, 3] : [2000, 500, 30]

  // All at once, for too few units: as many are placed as there are, and not one more.
  const shop = await openStore(() => balancer, { sockets: quick ? 200 : 600, pets: 1, units })
  const placed = await storm(shop, orders)
  if (placed !== units) report.violations.push(`${orders} orders for ${units} units: ${placed} were placed`)
  await verify(url, shop, report)
  report.rounds++

  // Everything at once on few pets, some of it twice at the same moment, while others read every list.
  const store = await openStore(() => balancer, { sockets: 200, pets: 3, units: 500 })
  await storm(store, 60)
  const feed = await followFeed(store, services.map(({ port }) => port), stage)
  const load = startWorkload(store, { workers: 48, retry: true, twice: true })
  const end = Date.now() + seconds * 1000
  const restlessness = restless(store, end)
  const walkers = [
    walk(store.client, '/store/orders?limit=7', [...store.ledger.orders.values()].flatMap(({ id, acknowledged }) => acknowledged === true ? [id!] : []), end, report.violations),
    walk(store.client, '/store/orders?limit=9&sort=-id', [...store.ledger.orders.values()].flatMap(({ id, acknowledged }) => acknowledged === true ? [id!] : []), end, report.violations),
    walk(store.client, '/pets?limit=11', store.pets, end, report.violations)
  ]
  const walks = (await Promise.all(walkers)).reduce((sum, count) => sum + count, 0)
  await restlessness
  const lost = await load.stop()
  if (lost > 0) report.violations.push(`${lost} clients were never answered`)
  await feed.compare()
  await repeat(store, report, 300)
  await oneKeyEverywhere(store, services.map(({ port }) => client(() => port, { key: store.key })), report.violations)
  await verify(url, store, report)
  report.rounds++

  const latest = await revoke(store, services.map(({ port }) => port), stage)
  report.rounds++
  const statuses = new Map<string, number>()
  for (const { status, headers, body } of load.replies) {
    const name = `${body?.code ?? status}${headers['idempotency-replayed'] === undefined ? '' : ' replayed'}`
    statuses.set(name, (statuses.get(name) ?? 0) + 1)
  }
  report.notes.push(`${placed} of ${orders} orders placed for ${units} units; ${walks} walks through lists; a revoked key ended everywhere after ${latest} ms`)
  report.notes.push([...statuses].map(([name, count]) => `${name}: ${count}`).join(', '))
}

/** @returns how many of the orders were placed */
async function storm ({ client, ledger, pets }: Store, count: number): Promise<number> {
  const acts = Array.from({ length: count }, (_, i) => anOrder(pets[i % pets.length]!, 1, `storm-${pets[0]}-${i}`))
  const statuses = await Promise.all(acts.map(async (act) => {
    for (;;) {
      const reply = await client.send({ ...act, headers: { 'idempotency-key': act.key } })
      if (isUndecided(reply)) {
        await sleep(50)
        continue
      }
      ledger.note(act, reply)
      return reply.status
    }
  }))
  return statuses.filter((status) => status === 201).length
}

/** Walks a list over and over: what was there all along is met exactly once, and nothing twice. @returns how often */
async function walk (client: Client, first: string, lasting: Array<number | string>, end: number, violations: string[]): Promise<number> {
  let walks = 0
  for (; Date.now() < end; walks++) {
    const met = new Map<number | string, number>()
    for (let next: string | undefined = first; next !== undefined;) {
      const { status, body, headers } = await client.send({ method: 'GET', path: next })
      if (status !== 200) {
        violations.push(`${next} is answered ${status}`)
        break
      }
      for (const { id } of body as Array<{ id: number }>) met.set(id, (met.get(id) ?? 0) + 1)
      next = /<([^>]*)>; rel="next"/.exec(String(headers.link))?.[1]
    }
    for (const id of lasting) if (!met.has(id)) violations.push(`a walk of ${first} missed ${id}`)
    for (const [id, times] of met) if (times > 1) violations.push(`a walk of ${first} met ${id} ${times} times`)
  }
  return walks
}

/** The same request at the same moment in every process: one effect, and one answer. */
async function oneKeyEverywhere ({ ledger, categoryId, client }: Store, clients: Client[], violations: string[]): Promise<void> {
  await Promise.all(Array.from({ length: 40 }, async (_, i) => {
    const act = { kind: 'pet' as const, label: `everywhere ${i}`, key: `everywhere-${i}`, method: 'POST', path: '/pets', body: { name: `everywhere ${i}`, categoryId } }
    const call = { ...act, headers: { 'idempotency-key': act.key } }
    const replies = (await Promise.all(clients.map(async ({ send }) => await send(call)))).filter((reply) => !isUndecided(reply))
    const reply = replies[0] ?? await client.send(call)
    ledger.note(act, reply)
    if (new Set(replies.map(({ status, text }) => `${status} ${text}`)).size > 1) violations.push(`one request was answered ${replies.map(({ status, text }) => `${status} ${text}`).join(' and ')}`)
    const done = replies.filter(({ headers }) => headers['idempotency-replayed'] === undefined).length
    if (replies.length > 0 && done > 1) violations.push(`one request was done ${done} times`)
  }))
}

/** Revokes a key in the first process. @returns after how many ms the last one refused it */
async function revoke ({ client }: Store, ports: number[], stage: Stage): Promise<number> {
  const { violations } = stage.report
  const { body: { id, apiKey } } = await client.send({ method: 'POST', path: '/account/keys', body: {} })
  const clients = ports.map((port) => stage.client(() => port, { key: apiKey }))
  const ask = async ({ send }: Client): Promise<number> => (await send({ method: 'GET', path: '/account' })).status
  for (const each of clients) if (await ask(each) !== 200) violations.push('a new key does not work everywhere')
  const first = stage.client(() => ports[0]!, { key: apiKey })
  if ((await first.send({ method: 'DELETE', path: `/account/keys/${id}` })).status !== 204) violations.push('the key cannot be revoked')
  const revoked = Date.now()
  if (await ask(clients[0]!) !== 401) violations.push('a revoked key works on in the process that revoked it')
  for (;;) {
    const statuses = await Promise.all(clients.map(ask))
    const after = Date.now() - revoked
    if (statuses.every((status) => status === 401)) return after
    if (after > REVOKED_MS) {
      violations.push(`a revoked key is answered ${statuses.join(', ')} after ${after} ms`)
      return after
    }
    await sleep(100)
  }
}

/** One address for several ports: each connection goes to the next of them. */
async function balance (ports: number[], atEnd: Stage['atEnd']): Promise<number> {
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
