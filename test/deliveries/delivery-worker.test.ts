import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mock } from 'node:test'
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { LEASE_MS } from '../../src/deliveries/claim.ts'
import { REQUEST_TIMEOUT_MS } from '../../src/deliveries/http-client.ts'
import { startApp } from '../support/app.ts'
import { build, CLI } from '../support/cli.ts'
import { backlog, becomes, send } from '../support/delivery.ts'
import { database, emptyDatabase } from '../support/database.ts'
import { eventually } from '../support/receiver.ts'
import { startDeliveryWorker } from './workers.ts'

t.before(build)

function startWorker (t: Test, url: string): ChildProcess {
  const settings = { LOG_LEVEL: 'silent', WEBHOOKS_ALLOW_PRIVATE: 'true', REQUEST_TIMEOUT_MS: '60000' }
  const child = spawn(process.execPath, [CLI, 'worker'], {
    env: { ...process.env, ...settings, DATABASE_URL: url },
    stdio: ['ignore', 'ignore', 'pipe']
  })
  t.teardown(() => { child.kill('SIGKILL') })
  return child
}

t.test('a worker process delivers for services with DELIVERY=false', async (t) => {
  const { service, ada, ids, receiver } = await backlog(t, 20)
  const worker = startWorker(t, service.config.DATABASE_URL)
  for (const id of ids) await becomes(ada, id, 'delivered')
  await becomes(ada, await send(ada), 'delivered')
  t.equal(receiver.received.length, 21)
  worker.kill('SIGTERM')
  t.same(await once(worker, 'exit'), [0, null], 'stops cleanly')
})

t.test('a lease lasts longer than two requests with their reserve', async (t) => {
  t.ok(LEASE_MS > 2 * (REQUEST_TIMEOUT_MS + 2_000), `${LEASE_MS} ms`)
})

t.test('deliveries of a killed worker are delivered when its leases expire', { timeout: 300_000 }, async (t) => {
  const { service, ada, ids, receiver } = await backlog(t, 20)
  // A receiver gets one request at a time until its first response.
  receiver.respond = (response, _received, nth) => { if (nth === 1) response.writeHead(200).end() }
  const worker = startWorker(t, service.config.DATABASE_URL)
  await receiver.until(5)
  worker.kill('SIGKILL')
  await once(worker, 'exit')
  const before = receiver.received.length
  receiver.respond = (response) => { response.writeHead(200).end() }
  // As if the time of the leases had passed.
  const { count } = await service.app.database.prisma.delivery.updateMany({
    where: { leasedBy: { not: null } }, data: { nextTryAt: new Date() }
  })
  t.ok(count > 0, `${count} leases were left`)
  const settings = { DELIVERY: 'true', WEBHOOKS_ALLOW_PRIVATE: 'true', DATABASE_URL: service.config.DATABASE_URL }
  await startApp(t, settings)
  for (const id of ids) await becomes(ada, id, 'delivered')
  t.equal(new Set(receiver.received.map(({ id }) => id)).size, 20, 'each event is sent at least once')
  t.ok(receiver.received.length - before <= 20, 'and none is sent many times')
})

t.test('a worker process is notified of each commit with deliveries', {
  skip: database === 'sqlite' && 'SQLite has no notifications: the worker polls every 5 s'
}, async (t) => {
  const { ada, ids, deliver, receiver } = await backlog(t, 1)
  const { app } = await deliver()
  await becomes(ada, ids[0]!, 'delivered')
  let notified = false
  // No webhook receives the events of the worker's own commits.
  app.onChange(({ deliveries }) => { if (deliveries !== undefined) notified = true })
  let sent = 1
  // The process may still connect when the first message is sent.
  await eventually(async () => {
    await send(ada)
    sent++
    return notified
  })
  await receiver.until(sent)
  t.equal(receiver.received.length, sent)
})

t.test('a worker process does not start on a database without migrations', async (t) => {
  const worker = startWorker(t, await emptyDatabase(t))
  let output = ''
  worker.stderr!.setEncoding('utf8').on('data', (chunk: string) => { output += chunk })
  t.same(await once(worker, 'close'), [1, null])
  t.match(output, /^The database misses \d+ migration\(s\): .* petstore migrate\n$/)
})

t.test('while there are more messages without webhooks, a worker polls again at once', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => { mock.timers.reset() })
  const steps: unknown[] = []
  const service = {
    read: async () => ({ messages: 7n }),
    commit: async (_command: unknown, input: unknown) => {
      steps.push(input)
      return { record: steps.length < 3 }
    }
  } as unknown as FastifyInstance
  startDeliveryWorker(t, service, {})
  // Far less than the interval of polls without work.
  for (let ms = 0; ms <= 2_000; ms += 500) {
    mock.timers.tick(500)
    await new Promise(setImmediate)
  }
  t.same(steps, Array.from({ length: 3 }, () => ({ upTo: 7 })))
})
