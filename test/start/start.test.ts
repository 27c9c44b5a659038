import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, openSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { hashOf } from '../../src/accounts/api-key.ts'
import { buildApp } from '../../src/app.ts'
import { readConfig } from '../../src/config.ts'
import { openDatabase } from '../../src/database/open-database.ts'
import { openDemo } from '../../src/seed/demo-store.ts'
import { listen } from '../../src/start/server.ts'
import { startApp } from '../support/app.ts'
import { build, CLI } from '../support/cli.ts'
import { database, emptyDatabase, freshDatabase } from '../support/database.ts'
import { freePort } from '../support/port.ts'
import { eventually } from '../support/receiver.ts'
import { ON_SQLITE, answers, failed, folder, run, start } from './process.ts'

t.before(build)

async function openAccount (origin: string): Promise<string> {
  const answer = await fetch(`${origin}/accounts`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"name": "A store"}'
  })
  return (await answer.json() as { apiKey: string }).apiKey
}

/** Converts the request in a greeting, `curl -H 'Name: value' URL`, to the arguments of fetch. */
function pasted (text: string): [address: string, options: { headers: Record<string, string> }] {
  const command = /^ *curl (.*)$/m.exec(text)?.[1] ?? ''
  const headers = Object.fromEntries(
    [...command.matchAll(/-H '([^:]+): ([^']+)'/g)].map(([, name, value]) => [name, value])
  )
  return [command.split(' ').at(-1)!, { headers }]
}

t.test(
  'the first start creates a demo store and prints its key once, with a working request',
  { skip: database !== 'sqlite' && 'only in the default SQLite file' },
  async (t) => {
    const cwd = folder(t)
    const first = await start(t, { HOST: '0.0.0.0' }, { cwd })
    t.ok(existsSync(join(cwd, 'petstore.db')), 'the database is in the working directory')
    t.equal(first.err().match(/psk_\w+/g)?.length, 3, 'the key, and the page and the request that contain it')
    const key = /^ {2}(psk_\w+)$/m.exec(first.err())?.[1]
    t.match(first.err(), `\n  ${first.origin}/#key=${key}\n`, 'an address that a browser can open')
    t.notMatch(first.out(), 'psk_', 'the log does not contain it')
    const [address, options] = pasted(first.err())
    t.ok(address.startsWith(first.origin), address)
    const pets = (await (await fetch(address, options)).json()) as unknown[]
    t.equal(pets.length, 20, 'a page of pets')
    const curl = spawnSync('bash', ['-c', /^ *curl .*$/m.exec(first.err())![0]], { encoding: 'utf8' })
    if (curl.status === 0) t.same(JSON.parse(curl.stdout), pets, 'as pasted into a shell')
    for (const [path, least] of [
      ['/categories', 3],
      ['/store/orders', 3],
      ['/inventory', 15]
    ] as const) {
      const rows = (await (await fetch(`${first.origin}${path}`, options)).json()) as unknown[]
      t.ok(rows.length >= least, `${rows.length} at ${path}`)
    }
    t.equal(await first.stop(), 0)

    const started = Date.now()
    const second = await start(t, {}, { cwd })
    t.comment(`the second start took ${Date.now() - started} ms`)
    t.match(second.err(), /^\nThe database has a store already: "Demo store", account 1\./)
    t.match(second.err(), /^ {2}npx --no petstore key create --account 1$/m)
    t.notMatch(second.err(), 'psk_')
    t.equal(
      (await fetch(`${second.origin}${new URL(address).pathname}`, options)).status,
      200,
      'the first key still works'
    )
    t.equal(await second.stop(), 0)
  }
)

t.test(
  'a configured database, or one with an account, gets no demo store',
  { skip: ON_SQLITE },
  async (t) => {
    const cwd = folder(t)
    const named = await start(t, { DATABASE_URL: 'file:./named.db' }, { cwd })
    t.equal(named.err(), '', 'named')
    await openAccount(named.origin)
    await named.stop()
    const used = await start(t, { DATABASE_URL: 'file:./named.db', DEMO: 'true' }, { cwd })
    t.match(used.err(), /has a store already: "A store", account 1\./, 'used, though DEMO asks for it')
    await used.stop()
    const refused = await start(t, { DEMO: 'false' }, { cwd })
    t.equal(refused.err(), '', 'DEMO=false')
    await refused.stop()
    const empty = await start(t, { DATABASE_URL: '' }, { cwd })
    t.match(empty.err(), 'psk_', 'an empty DATABASE_URL counts as not set')
  }
)

t.test(
  'after a start that failed before it printed the key, the next start prints one and creates no second store',
  { skip: ON_SQLITE },
  async (t) => {
    const cwd = folder(t)
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    t.teardown(() => {
      other.close()
    })
    const { port } = other.address() as AddressInfo
    await failed(t, await run(t, 'start', { PORT: String(port) }, { cwd }), /port is in use.*PORT/)
    for (let i = 0; i < 2; i++) {
      const next = await start(t, {}, { cwd })
      const [address, options] = pasted(next.err())
      // Only the last start's key is used: until a key is used, every start prints one.
      if (i === 1) { t.same(((await (await fetch(`${address}?limit=100`, options)).json()) as Array<{ id: number }>).length, 21) }
      t.equal(await next.stop(), 0)
    }
    t.notMatch((await start(t, {}, { cwd })).err(), 'psk_', 'no key, because one was used')
  }
)

t.test('of processes that start at once with DEMO=true, one opens the store and all go on', async (t) => {
  const DATABASE_URL = await freshDatabase(t)
  const config = readConfig({ DATABASE_URL, DEMO: 'true', LOG_LEVEL: 'silent', DELIVERY: 'false' })
  const apps = await Promise.all([1, 2, 3].map(async () => await buildApp(config)))
  t.teardown(async () => { await Promise.all(apps.map(async (app) => { await app.close() })) })
  await Promise.all(apps.map(async (app) => { await app.ready() }))
  const greetings = await Promise.all(apps.map(openDemo))
  for (const greet of greetings) t.match(greet('http://pets.example'), /#key=psk_/)
  t.match(await apps[0]!.database.prisma.account.findMany(), [{ name: 'Demo store' }])
})

t.test('a demo store whose keys nobody uses never keeps the service from starting', async (t) => {
  const { app, withKey } = await startApp(t, { STORED_BYTES_PER_ACCOUNT: '1000000' })
  const { apiKey, account } = app.database.prisma
  const keys: string[] = []
  for (let i = 0; i < 102; i++) keys.push(/psk_\w+/.exec((await openDemo(app))('http://pets.example'))![0])
  t.equal(await apiKey.count(), 100)
  await apiKey.updateMany({ data: { label: 'for a test' } })
  const refused = (await openDemo(app))('http://pets.example')
  t.match(refused, /has a store already: "Demo store", account \d+\. To get/, 'keys with a label stay')
  await apiKey.delete({ where: { hash: hashOf(keys[50]!) } })
  await account.updateMany({ data: { storedBytes: 1_000_001 } })
  t.equal((await openDemo(app))('http://pets.example'), refused, 'the store is full')

  t.equal((await withKey(keys[0]!).get('/pets')).status, 401, 'the oldest key')
  t.equal((await withKey(keys[101]!).get('/pets')).status, 200, 'the newest key')
})

t.test('DEMO=true creates a demo store in any empty database', async (t) => {
  const DATABASE_URL = await freshDatabase(t)
  const { origin, err } = await start(t, { DATABASE_URL, DEMO: 'true', BASE_PATH: '/v1' })
  const [address, options] = pasted(err())
  t.equal(address, `${origin}/v1/pets`)
  t.equal((await fetch(address, options)).status, 200)
})

t.test('an empty database is migrated if the setting or the kind of database requires it', async (t) => {
  const DATABASE_URL = await emptyDatabase(t)
  const settings = { DATABASE_URL, MIGRATE_ON_START: 'true' }
  const { origin, err } = await start(t, settings)
  t.match(await openAccount(origin), /^psk_/)
  t.equal(err(), '')
  t.equal((await fetch(`${origin}/livez`)).status, 200)
})

t.test('a pending migration stops a start that must not apply it, and petstore migrate applies it', async (t) => {
  const DATABASE_URL = await emptyDatabase(t)
  const settings = { DATABASE_URL, ...database === 'sqlite' ? { MIGRATE_ON_START: 'false' } : {} }
  await failed(t, await run(t, 'start', settings), /migration.*petstore migrate/)

  const migrate = await run(t, 'migrate', { DATABASE_URL })
  t.equal(await migrate.ended, 0)
  t.match(migrate.out(), /^Applied \d{14}_\w+\n/)
  t.equal(migrate.err(), '')
  const again = await run(t, 'migrate', { DATABASE_URL })
  t.equal(await again.ended, 0)
  t.equal(again.out(), 'The database is up to date.\n')

  const { origin } = await start(t, settings)
  t.match(await openAccount(origin), /^psk_/)
})

t.test('SIGTERM and SIGINT end the service with code 0', { skip: ON_SQLITE }, async (t) => {
  const DATABASE_URL = await freshDatabase(t)
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    const { stop, err, origin } = await start(t, { DATABASE_URL })
    t.equal(await stop(signal), 0, signal)
    t.equal(err(), '')
    t.notOk(await answers(`${origin}/livez`))
  }
})

t.test('without a grace period, the service still closes its database and ends with code 0', {
  skip: ON_SQLITE
}, async (t) => {
  const { stop, out } = await start(t, { DATABASE_URL: await freshDatabase(t), SHUTDOWN_GRACE_MS: '0' })
  t.equal(await stop(), 0)
  t.match(out(), '"msg":"stopped"')
})

t.test('a service that is closed while it starts has not failed', async (t) => {
  const config = readConfig({ DATABASE_URL: await freshDatabase(t), PORT: '0', LOG_LEVEL: 'silent' })
  const app = await buildApp(config)
  let closed: Promise<void> | undefined
  app.addHook('onReady', async () => { closed = app.close() })
  t.equal(await listen(app, config, true), false)
  await closed
})

t.test('a reader that does not take the log keeps the service neither from serving nor from ending', {
  skip: ON_SQLITE || process.platform === 'win32'
}, async (t) => {
  const env = { PATH: process.env['PATH'], PORT: String(await freePort()), DATABASE_URL: await freshDatabase(t) }
  // The shell opens the pipe for a reader that sleeps, and becomes the service.
  const script = 'mkfifo log && { sleep 600 < log & } && exec "$0" "$1" start > log'
  const options = { cwd: folder(t), env, stdio: 'ignore', detached: true } as const
  const service = spawn('sh', ['-c', script, process.execPath, CLI], options)
  t.teardown(() => process.kill(-service.pid!, 'SIGKILL'))
  const origin = `http://127.0.0.1:${env.PORT}`
  while (!await answers(`${origin}/readyz`)) await sleep(50)
  // A line has 250 bytes, and the pipe holds 64 KB.
  for (let round = 0; round < 20; round++) {
    const statuses = await Promise.all(Array.from({ length: 50 }, async () => (await fetch(`${origin}/pets`)).status))
    t.same(statuses, Array(50).fill(401))
  }
  service.kill('SIGTERM')
  const [code, signal] = await once(service, 'exit') as [number | null, NodeJS.Signals | null]
  t.same({ code, signal }, { code: null, signal: 'SIGKILL' }, 'it ends without the lines that nobody takes')
})

t.test('a log that cannot be written keeps the service neither from serving nor from ending', {
  skip: ON_SQLITE || !existsSync('/dev/full')
}, async (t) => {
  const logs = { 'a pipe that was closed': 'pipe', 'a full disk': openSync('/dev/full', 'w') } as const
  for (const [log, output] of Object.entries(logs)) {
    const env = { PATH: process.env['PATH'], PORT: String(await freePort()), DATABASE_URL: await freshDatabase(t) }
    const stdio = ['ignore', output, 'ignore'] as const
    const service = spawn(process.execPath, [CLI, 'start'], { cwd: folder(t), env, stdio: [...stdio] })
    t.teardown(() => service.kill('SIGKILL'))
    service.stdout?.destroy()
    const address = `http://127.0.0.1:${env.PORT}/livez`
    await eventually(async () => await answers(address), 20_000)
    // A line is written after 100 ms, and a reader has stalled after 500 ms.
    await sleep(700)
    t.ok(await answers(address), log)
    await sleep(200)
    service.kill('SIGTERM')
    t.same(await once(service, 'exit'), [0, null], log)
  }
})

t.test('the cause of a 500 is in the log, with the id of the request, and nowhere else', async (t) => {
  const DATABASE_URL = await freshDatabase(t)
  const { origin, out, stop } = await start(t, { DATABASE_URL })
  const key = await openAccount(origin)
  const onlooker = await openDatabase({ url: DATABASE_URL, pool: 2, timeout: 60_000 })
  await onlooker.prisma.$executeRawUnsafe('DROP TABLE messages')
  await onlooker.close()
  const answer = await fetch(`${origin}/messages`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'request-id': 'find-me' },
    body: '{"message": "between us"}'
  })
  t.same(
    { status: answer.status, body: await answer.json() },
    {
      status: 500,
      body: {
        code: 'internal_error',
        message: 'An internal error occurred. Quote the Request-Id when you report it.',
        status: 500
      }
    }
  )
  await stop()
  const lines = out()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { requestId?: string, level: number, err?: { message: string, stack: string } })
  const line = lines.find(({ requestId, level }) => requestId === 'find-me' && level === 50)
  t.match(line?.err, { message: /messages/, stack: /\bat / })
  for (const secret of [key, key.slice(12), 'between us', 'Bearer', 'secret']) {
    t.notOk(out().includes(secret), 'no key, header or body is logged')
  }
})
