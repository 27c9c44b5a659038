// Only on SQLite: checks the search itself; the scenario runs on both databases.

import { once } from 'node:events'
import { createServer, request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { startApp, type TestApp } from '../../support/app.ts'
import { contractOf, type Contract } from '../../support/contract.ts'
import { createClient } from '../client.ts'
import { createReport } from '../report.ts'
import { checkHistory } from './check.ts'
import type { Feed } from './feed.ts'
import type { Event, Operation } from './operation.ts'
import { createRecorder } from './recorder.ts'
import { startLoad } from './workload.ts'

/** A request, or an answer, as it passes the proxy. */
interface Exchange {
  method: string
  path: string
  headers: IncomingHttpHeaders
  body: string
}

interface Reply { status: number, headers: IncomingHttpHeaders, text: string }

/** Answers a request for the service, by what the service answers to the same request or to others. */
type Tamper = (exchange: Exchange, forward: (exchange: Exchange) => Promise<Reply>) => Promise<Reply>

/** Most requests pass unchanged. */
const isChosen = (): boolean => Math.random() < 0.2

const MAX_ATTEMPTS = 5

/** Enough that clients meet and each kind of request occurs. */
const OPERATIONS = 300

const FAULTS: Record<string, { tamper: () => Tamper, violation: RegExp }> = {
  'a stale read': {
    tamper: () => {
      const cache = new Map<string, Reply>()
      return async (exchange, forward) => {
        const { method, path } = exchange
        const cached = cache.get(path)
        if (method === 'GET' && !path.startsWith('/events') && cached !== undefined && isChosen()) return cached
        const reply = await forward(exchange)
        if (method === 'GET' && reply.status === 200) cache.set(path, reply)
        return reply
      }
    },
    violation: /no order of the requests explains an answer/
  },
  'a lost update': {
    tamper: () => async (exchange, forward) => {
      const { 'if-match': _ifMatch, ...headers } = exchange.headers
      return await forward(isChosen() ? { ...exchange, headers } : exchange)
    },
    violation: /no order of the requests explains an answer/
  },
  'a doubled effect': {
    tamper: () => async (exchange, forward) => {
      const { 'idempotency-key': key, ...headers } = exchange.headers
      if (exchange.path === '/store/orders' && key !== undefined && isChosen()) await forward({ ...exchange, headers })
      return await forward(exchange)
    },
    violation: /has ids|was created twice|no order of the requests explains an answer|no common order/
  },
  'a key that is forgotten': {
    tamper: () => async (exchange, forward) => {
      const { 'idempotency-key': key, ...headers } = exchange.headers
      return await forward(key !== undefined && isChosen() ? { ...exchange, headers } : exchange)
    },
    violation: /executed twice|were answered|no order of the requests explains an answer/
  },
  'a write that is acknowledged and never happens': {
    tamper: () => async (exchange, forward) => {
      const { method, path, body } = exchange
      if (method !== 'PATCH' || !path.startsWith('/categories') || !isChosen()) return await forward(exchange)
      const { text, ...reply } = await forward({ ...exchange, method: 'GET', body: '' })
      const etag = `"${Number(String(reply.headers.etag).slice(1, -1)) + 1}"`
      const record = { ...JSON.parse(text), ...JSON.parse(body) }
      return { ...reply, headers: { ...reply.headers, etag }, text: JSON.stringify(record) }
    },
    violation: /no order of the requests explains an answer|no common order/
  },
  'a feed that lags behind': {
    tamper: () => async (exchange, forward) => {
      const reply = await forward(exchange)
      if (!exchange.path.startsWith('/events') || reply.text === '[]' || !isChosen()) return reply
      const after = /after=(\d+)/.exec(exchange.path)![1]!
      return { ...reply, headers: { ...reply.headers, 'event-id': after }, text: '[]' }
    },
    // Without a later poll, the events that the last one hides seem to be missing.
    violation: /ended at event|no common order/
  }
}

/** Faults of the feed, planted in what was recorded. */
const FEED_FAULTS: Record<string, { plant: (events: Event[]) => void, violation: RegExp }> = {
  'two events of one object changed places': {
    plant (events) {
      const laterOne = (first: Event): Event | undefined => events.find(({ object, id, type }) =>
        object === first.object && id > first.id && type === first.type)
      // Which pets are ordered twice differs from run to run.
      const first = events.find((event) => event.type === 'order.placed' && laterOne(event) !== undefined)!
      exchange(events, first, laterOne(first)!)
    },
    violation: /no common order/
  },
  'two events of different objects changed places': {
    plant (events) {
      const isMessage = ({ type }: Event): boolean => type === 'message.created'
      exchange(events, events.find(isMessage)!, events.findLast(isMessage)!)
    },
    violation: /not in the order of the answers/
  },
  'an event is missing': {
    plant (events) { events.splice(20, 1) },
    violation: /has event 22 in place of event 21/
  },
  'an event came twice': {
    plant (events) { events.push({ ...events.at(-1)!, id: events.length + 1 }) },
    violation: /no common order/
  },
  'an event has other contents than the answers': {
    plant (events) {
      const counted = events.find(({ type }) => type === 'inventory.counted')!
      counted.data = { ...counted.data, previousQuantity: 1_234_567 }
    },
    violation: /no common order/
  },
  'an event names an object that nobody created': {
    plant (events) { events.push({ id: events.length + 1, object: 'pet 4711', type: 'pet.created', data: {} }) },
    violation: /no client created/
  }
}

/** Gives each of two events the contents of the other. */
function exchange (events: Event[], first: Event, second: Event): void {
  events[first.id - 1] = { ...second, id: first.id }
  events[second.id - 1] = { ...first, id: second.id }
}

t.test('histories of a service', async (t) => {
  const service = await startApp(t)
  const contract = contractOf(service.app, service.config)

  await t.test('are linearizable, and are not after a fault of the feed', async (t) => {
    const { history, feed, violations } = await record(t, service, contract, async (exchange, forward) =>
      await forward(exchange))
    t.same(violations, [])
    t.match(checkHistory(history, feed), { undecided: 0, violations: [] })
    for (const [fault, { plant, violation }] of Object.entries(FEED_FAULTS)) {
      const events = structuredClone(feed.events)
      plant(events)
      t.match(checkHistory(history, { events, polls: [] }).violations.join('\n'), violation, fault)
    }
  })

  for (const [fault, { tamper, violation }] of Object.entries(FAULTS)) {
    await t.test(`are not linearizable after ${fault}`, async (t) => {
      let found = ''
      // The fault hits requests at random, and may hit none that it changes: an order that is refused is not doubled.
      for (let attempt = 0; attempt < MAX_ATTEMPTS && !violation.test(found); attempt++) {
        const { history, feed, violations } = await record(t, service, contract, tamper())
        found = [...violations, ...checkHistory(history, feed).violations].join('\n')
      }
      t.match(found, violation)
    })
  }
})

interface Recorded {
  history: Operation[]
  feed: Feed
  /** What the recorder itself noticed. */
  violations: string[]
}

/** Records a history through a proxy. */
async function record (
  t: Test, { port, openAccount }: TestApp, contract: Contract, tamper: Tamper
): Promise<Recorded> {
  const { key } = await openAccount()
  const proxy = await startProxy(t, port, tamper)
  const report = createReport('planted faults', '')
  const client = createClient(() => proxy, contract, createReport('requests', ''), { key: key! })
  t.teardown(client.close)
  const recorder = createRecorder(report)
  const load = await startLoad(recorder, { clients: 8, perObject: 60, choose: () => client })
  while (recorder.history.length < OPERATIONS) await sleep(20)
  await load.stop()
  const feed = await recorder.readFeed(client)
  return { history: recorder.history, feed, violations: report.violations }
}

async function startProxy (t: Test, port: number, tamper: Tamper): Promise<number> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk)).on('end', () => {
      const { method = '', url: path = '', headers } = request
      const exchange = { method, path, headers, body: Buffer.concat(chunks).toString() }
      tamper(exchange, async (exchange) => await forward(port, exchange)).then(({ status, headers, text }) => {
        const { 'content-length': length, 'transfer-encoding': encoding, connection, ...fields } = headers
        response.writeHead(status, fields as Record<string, string>).end(text)
      }, () => { response.destroy() })
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => { server.close().closeAllConnections() })
  return (server.address() as AddressInfo).port
}

async function forward (port: number, { method, path, headers, body }: Exchange): Promise<Reply> {
  const { 'content-length': length, 'transfer-encoding': encoding, connection, host, ...fields } = headers
  return await new Promise((resolve, reject) => {
    const request = httpRequest({ host: '127.0.0.1', port, method, path, headers: fields }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', reject).on('end', () => {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text: Buffer.concat(chunks).toString() })
      })
    })
    request.on('error', reject).end(body === '' ? undefined : body)
  })
}
