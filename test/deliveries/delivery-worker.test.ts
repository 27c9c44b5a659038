import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { startApp } from '../support/app.ts'
import { backlog, becomes, send } from '../support/delivery.ts'
import { database, emptyDatabase } from '../support/database.ts'

const CLI = fileURLToPath(new URL('../../src/cli.ts', import.meta.url))

function startWorker (t: Test, url: string) {
  const worker = spawn(process.execPath, ['--import=tsx', CLI, 'worker'], {
    env: { ...process.env, DATABASE_URL: url, LOG_LEVEL: 'silent', WEBHOOKS_ALLOW_PRIVATE: 'true' },
    stdio: ['ignore', 'ignore', 'pipe']
  })
  t.teardown(() => { worker.kill('SIGKILL') })
  return worker
}

t.test('a process of its own delivers for services that do not', async (t) => {
  const { service, ada, ids, receiver } = await backlog(t, 20)
  const worker = startWorker(t, service.config.DATABASE_URL)
  for (const id of ids) await becomes(ada, id, 'delivered', 30_000)
  await becomes(ada, await send(ada), 'delivered')
  t.equal(receiver.received.length, 21)
  worker.kill('SIGTERM')
  t.same(await once(worker, 'exit'), [0, null], 'stops cleanly')
})

t.test('a killed one loses nothing: another takes over when its leases end', { timeout: 100_000 }, async (t) => {
  const { service, ada, ids, receiver } = await backlog(t, 20)
  receiver.respond = (response, _received, nth) => { if (nth > 5) response.writeHead(200).end() }
  const worker = startWorker(t, service.config.DATABASE_URL)
  await receiver.until(5, 30_000)
  worker.kill('SIGKILL')
  await once(worker, 'exit')
  const before = receiver.received.length
  receiver.respond = (response) => { response.writeHead(200).end() }
  await startApp(t, { DELIVERY: 'true', WEBHOOKS_ALLOW_PRIVATE: 'true', DATABASE_URL: service.config.DATABASE_URL })
  for (const id of ids) await becomes(ada, id, 'delivered', 80_000)
  t.equal(new Set(receiver.received.map(({ id }) => id)).size, 20, 'each at least once')
  t.ok(receiver.received.length - before <= 20, 'and no storm')
})

t.test('it is told of each commit that has something for it', { skip: database === 'sqlite' && 'nobody is told: it looks every 5 s' }, async (t) => {
  const { ada, ids, deliver, receiver } = await backlog(t, 1)
  await deliver()
  await becomes(ada, ids[0]!, 'delivered')
  const began = Date.now()
  // One after the other, so that a worker that only looks by itself would take 5 s for each but the first.
  for (let i = 0; i < 5; i++) await becomes(ada, await send(ada), 'delivered')
  t.ok(Date.now() - began < 15_000)
  t.equal(receiver.received.length, 6)
})

t.test('it waits for nobody to migrate', async (t) => {
  const worker = startWorker(t, await emptyDatabase(t))
  let said = ''
  worker.stderr.setEncoding('utf8').on('data', (chunk: string) => { said += chunk })
  t.same(await once(worker, 'close'), [1, null])
  t.match(said, /^The database misses 2 migration\(s\): .* petstore migrate\n$/)
})
