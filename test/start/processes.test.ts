// Only on PostgreSQL: a SQLite file has one process, as its refusal below says.

import { once } from 'node:events'
import { Agent, request, type IncomingMessage } from 'node:http'
import { createServer, type AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { openDatabase } from '../../src/database/open-database.ts'
import { build } from '../support/cli.ts'
import { database, emptyDatabase, freshDatabase } from '../support/database.ts'
import { freePort } from '../support/port.ts'
import { eventually } from '../support/receiver.ts'
import { failed, run, type Running } from './process.ts'

t.before(build)

const skip = database === 'sqlite' && 'a SQLite file has one process'

/** Number of requests of the test, and in the demo store, before those that the test counts. */
const REQUESTS_BEFORE = 2

/** Far longer than a start or a stop takes: the service hangs if it needs longer. */
const PATIENCE_MS = 120_000

interface Line { pid: number, msg: string, worker?: number, process?: number, route?: string, end?: string }

interface Answer { status: number, headers: IncomingMessage['headers'], body: any }

interface Group extends Running {
  lines: () => Line[]
  /** The processes that have ever served, in their order. */
  pids: () => number[]
  /** Waits until so many processes have ever served. */
  served: (count: number) => Promise<void>
  send: (method: string, path: string, options?: { body?: unknown, agent?: Agent }) => Promise<Answer>
}

/** Starts two worker processes on a database, and waits until both serve. */
async function startGroup (t: Test, settings: Record<string, string> = {}): Promise<Group> {
  const DATABASE_URL = settings['DATABASE_URL'] ?? await freshDatabase(t)
  const running = await run(t, 'start', { PROCESSES: '2', DATABASE_URL, ...settings })
  const lines = (): Line[] => running.out().split('\n').flatMap((line) =>
    line.startsWith('{') && line.endsWith('}') ? [JSON.parse(line) as Line] : [])
  const pids = (): number[] => lines().flatMap(({ msg, process }) => / serves$/.test(msg) ? [process!] : [])
  let over = false
  void running.ended.then(() => { over = true })
  const served = async (count: number): Promise<void> => {
    await eventually(() => over || pids().length >= count, PATIENCE_MS, () => running.out() + running.err())
    if (over) throw new Error(`the service ended: ${running.err()}`)
  }
  await served(2)
  const origin = /Server listening at (http:\S+:\d+)"/.exec(running.out())![1]!
  const key = /^ {2}(psk_\w+)$/m.exec(running.err())?.[1]
  const send: Group['send'] = async (method, path, { body, agent } = {}) => {
    const asked = request(`${origin}${path}`, {
      method,
      agent: agent ?? false,
      headers: {
        ...key === undefined ? {} : { authorization: `Bearer ${key}` },
        ...body === undefined ? {} : { 'content-type': 'application/json' }
      }
    })
    asked.end(body === undefined ? undefined : JSON.stringify(body))
    const [response] = await once(asked, 'response') as [IncomingMessage]
    let text = ''
    for await (const part of response.setEncoding('utf8')) text += part as string
    return { status: response.statusCode!, headers: response.headers, body: text === '' ? '' : parsed(text) }
  }
  return { ...running, origin, lines, pids, served, send }
}

function parsed (text: string): unknown {
  return /^[[{]/.test(text) ? JSON.parse(text) : text
}

function isRunning (pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

async function ended (pids: number[]): Promise<void> {
  await eventually(() => !pids.some(isRunning), PATIENCE_MS)
}

/** Waits for a log line that says more than the lines before. */
async function logged ({ lines }: Group, msg: RegExp, count = 1): Promise<void> {
  await eventually(() => lines().filter((line) => msg.test(line.msg)).length >= count, PATIENCE_MS)
}

t.test('two processes share a port, a demo store and what is said about them', { skip }, async (t) => {
  const metricsPort = await freePort()
  const DATABASE_URL = await emptyDatabase(t)
  const group = await startGroup(t, {
    DATABASE_URL, MIGRATE_ON_START: 'true', DEMO: 'true', PORT: '0', METRICS_PORT: String(metricsPort)
  })
  const { send, served, pids, lines } = group
  const countRequests = async (): Promise<number> => {
    const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()
    return Number(/^http_requests_total\{operation="listCategories",status="200"\} (\d+)$/m.exec(text)?.[1] ?? 0)
  }

  await t.test('one of them migrates, opens the store and prints its key', async (t) => {
    t.equal(group.err().match(/psk_\w+/g)?.length, 3, 'the key, and the page and the request that contain it')
    t.equal((await send('GET', '/pets')).status, 200)
  })

  await t.test('with PORT=0, both have the same port', async (t) => {
    const addresses = lines().flatMap(({ msg }) => /listening at (.*)/.exec(msg)?.[1] ?? [])
    t.same(addresses, [group.origin, group.origin])
  })

  let sent = 0
  await t.test('both serve, and a line says which worker a process is', async (t) => {
    const isRequest = ({ route }: Line): boolean => route === '/categories'
    const serving = (): number[] => pids().filter((pid) => lines().some((line) => isRequest(line) && line.pid === pid))
    // Which of them accepts a connection is up to the system.
    await eventually(async () => {
      const answers = await Promise.all([1, 2, 3, 4].map(async () => await send('GET', '/categories')))
      sent += 4
      t.same(answers.map(({ status }) => status), [200, 200, 200, 200])
      return serving().length === 2
    }, PATIENCE_MS)
    await eventually(() => lines().filter(isRequest).length === sent)
    t.match(lines().filter(({ msg }) => / serves$/.test(msg)), [{ worker: 1 }, { worker: 2 }])
  })

  await t.test('the metrics are those of both', async (t) => {
    t.equal(await countRequests(), sent)
  })

  await t.test('a fault, limits, a clock and the journal work at once in the other process, too', async (t) => {
    const everywhere = async (method: string, path: string): Promise<Answer[]> =>
      await Promise.all([1, 2, 3, 4].map(async () => await send(method, path)))
    for (let round = 0; round < 5; round++) {
      const body = { operation: 'listOrders', effect: { type: 'refuse', status: 503 }, times: 1_000 }
      const { status, body: fault } = await send('POST', '/lab/faults', { body })
      t.equal(status, 201)
      t.same((await everywhere('GET', '/store/orders')).map(({ status }) => status), [503, 503, 503, 503])
      t.equal((await send('DELETE', `/lab/faults/${fault.id}`)).status, 204)
      t.same((await everywhere('GET', '/store/orders')).map(({ status }) => status), [200, 200, 200, 200])
      const limits = { requests: 1, windowSeconds: 3_600 }
      t.equal((await send('PUT', '/lab/limits', { body: limits })).status, 200)
      t.same((await everywhere('GET', '/pets')).map(({ status }) => status).sort(), [200, 429, 429, 429])
      t.equal((await send('DELETE', '/lab/limits')).status, 204)
      const moved = await send('POST', '/lab/clock/advance', { body: { seconds: 60 } })
      t.equal(moved.status, 200)
      const clocks = (await everywhere('GET', '/pets')).map(({ headers }) => String(headers['petstore-clock']))
      t.same(clocks.filter((clock) => Date.parse(clock) - Date.now() < (round + 1) * 60_000 - 30_000), [])
      const journal = await send('GET', '/lab/requests?operation=listPets&limit=100')
      t.equal((journal.body as unknown[]).length, REQUESTS_BEFORE + (round + 1) * 8, 'the journal has all of both')
    }
  })

  await t.test('a killed process is replaced, while the other one serves', async (t) => {
    const [first, second] = pids()
    // The other one accepts the connections that this one cannot.
    process.kill(second!, 'SIGSTOP')
    const answers = await Promise.all([1, 2, 3, 4].map(async () => await send('GET', '/pets')))
    t.same(answers.map(({ status }) => status), [200, 200, 200, 200])
    process.kill(second!, 'SIGKILL')
    await logged(group, /^worker 2 ended with SIGKILL; another one starts in 100 ms$/)
    t.equal((await send('GET', '/pets')).status, 200)
    await served(3)
    t.match(lines().filter(({ end }) => end !== undefined), [{ worker: 2, process: second, end: 'SIGKILL' }])
    t.equal(pids().length, 3)
    t.ok(isRunning(first!) && isRunning(pids()[2]!))
    t.equal(await countRequests(), sent, 'what it has counted stays')
  })

  await t.test('SIGHUP replaces all, one after the other, and no request fails', async (t) => {
    const before = pids().slice(-2).concat(pids()[0]!)
    const agent = new Agent({ keepAlive: true, maxSockets: 8 })
    const failures: unknown[] = []
    let answers = 0
    const over = new AbortController()
    const load = Array.from({ length: 8 }, async (_, i) => {
      while (!over.signal.aborted) {
        const [method, path, body] = i % 2 === 0 ? ['GET', '/inventory'] : ['POST', '/categories', { name: 'Cats' }]
        const sent = send(method as string, path as string, { agent, body })
        const { status } = await sent.catch((error: unknown) => ({ status: error }))
        if (status !== 200 && status !== 201) failures.push(status)
        answers++
      }
    })
    // Requests on connections of their own meet the moment at which a process leaves the port.
    const newcomers = Array.from({ length: 4 }, async () => {
      while (!over.signal.aborted) {
        const { status } = await send('GET', '/livez').catch((error: unknown) => ({ status: error }))
        if (status !== 200) failures.push(status)
      }
    })
    process.kill(group.pid, 'SIGHUP')
    await logged(group, /^reloaded$/)
    over.abort()
    await Promise.all([...load, ...newcomers])
    agent.destroy()
    t.same(failures, [])
    t.ok(answers > 8, `${answers} answers`)
    t.equal(pids().length, 5)
    t.notOk(before.some(isRunning), 'the processes before the signal have ended')
    t.equal(group.err().match(/psk_\w+/g)?.length, 3, 'no further key')
    t.equal(await countRequests(), sent, 'what they have counted stays')
  })

  await t.test('SIGTERM stops all, and the code is 0', async (t) => {
    t.equal(await group.stop(), 0)
    await ended(pids())
    t.match(group.out(), '"msg":"stopped"')
  })
})

t.test('an interrupt of the terminal, which reaches every process, stops all with code 0', { skip }, async (t) => {
  const DATABASE_URL = await freshDatabase(t)
  const group = await startGroup(t, { DATABASE_URL })

  await t.test('a reload whose first process does not come to serve leaves the others as they are', async (t) => {
    const onlooker = await openDatabase({ url: DATABASE_URL, pool: 2, timeout: 60_000 })
    await onlooker.prisma.$executeRawUnsafe('UPDATE _prisma_migrations SET finished_at = NULL')
    await onlooker.close()
    process.kill(group.pid, 'SIGHUP')
    await logged(group, /^the reload failed: the new worker 1 ended with 1; the workers before it go on$/)
    t.match(group.err(), /misses \d+ migration/)
    t.equal(group.pids().length, 2)
    t.ok(group.pids().every(isRunning))
    t.equal((await group.send('GET', '/livez')).status, 200)
    t.notMatch(group.out(), '"reloaded"')
  })

  for (const pid of group.pids()) process.kill(pid, 'SIGINT')
  t.equal(await group.stop('SIGINT'), 0)
  await ended(group.pids())
})

t.test('a process that does not stop is killed after the grace period, and the code is 1', { skip }, async (t) => {
  const group = await startGroup(t, { SHUTDOWN_GRACE_MS: '100' })
  process.kill(group.pids()[1]!, 'SIGSTOP')
  t.equal(await group.stop(), 1)
  await ended(group.pids())
  t.match(group.out(), /"worker":2,.*"worker 2 does not stop; killing it"/)
})

t.test('when the first process is killed, the others answer the requests in flight, and end', { skip }, async (t) => {
  const group = await startGroup(t, { DEMO: 'true' })
  const { send } = group
  const body = { operation: 'listOrders', effect: { type: 'delay', ms: 2_000 } }
  const { body: { id } } = await send('POST', '/lab/faults', { body })
  const slow = send('GET', '/store/orders')
  await eventually(async () => (await send('GET', `/lab/faults/${id}`)).body.hits === 1)
  process.kill(group.pid, 'SIGKILL')
  t.equal((await slow).status, 200)
  await ended(group.pids())
})

t.test('a start that fails ends with one message, and is not repeated', { skip }, async (t) => {
  const DATABASE_URL = await emptyDatabase(t)
  await failed(t, await run(t, 'start', { PROCESSES: '2', DATABASE_URL }), /misses \d+ migration/)
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.teardown(() => { other.close() })
  const PORT = String((other.address() as AddressInfo).port)
  const settings = { PROCESSES: '2', DATABASE_URL: await freshDatabase(t) }
  await failed(t, await run(t, 'start', { ...settings, PORT }), /port is in use.*PORT/)
  await failed(t, await run(t, 'start', { ...settings, METRICS_PORT: PORT }), /METRICS_PORT \d+ is in use/)
})

t.test('SQLite is refused, with the reason and what to use', async (t) => {
  const settings = { PROCESSES: '2', DATABASE_URL: 'file:./petstore.db' }
  await failed(t, await run(t, 'start', settings), /SQLite lets one process write.*set DATABASE_URL to a PostgreSQL/)
})
