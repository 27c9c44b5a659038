import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { openDatabase } from '../../src/database/open.ts'
import { database, emptyDatabase, freshDatabase } from '../support/database.ts'
import { freePort } from '../support/port.ts'

// The real process, as `npm start` runs it: what is compiled in dist, in a working directory of its own.

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: Record<string, string> }

/** Far more than a start takes; a service that does not serve by then is stuck. */
const START_TIMEOUT_MS = 30_000

interface Running {
  /** Where it serves, once it does. */
  origin: string
  out: () => string
  err: () => string
  /** Its exit code, once it ended; the signal when one ended it. */
  ended: Promise<number | NodeJS.Signals>
  stop: (signal?: NodeJS.Signals) => Promise<number | NodeJS.Signals>
}

interface Options {
  cwd?: string
  /** An account that is not root, for whom permissions count. */
  account?: { uid?: number, gid?: number }
}

// Some forty processes start here, one after the other.
t.setTimeout(900_000)

t.before(() => {
  const { status } = spawnSync(process.execPath, ['scripts/prepare.mjs', 'build'], { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] })
  if (status !== 0) throw new Error('the service cannot be built')
})

/** Runs an npm script's command, without npm, or a command like it, in a folder and with settings of its own. */
async function run (t: Test, script: string, settings: Record<string, string>, { cwd = folder(t), account = {} }: Options = {}): Promise<Running> {
  const [program, file = '', ...args] = (scripts[script] ?? script).split(' ')
  if (program !== 'node') throw new Error(`npm run ${script} does not run node`)
  const port = settings['PORT'] ?? String(await freePort())
  const child = spawn(process.execPath, [join(ROOT, file), ...args], {
    cwd,
    // The test runner writes something about each child, which may not be allowed to write where it would.
    env: { PATH: process.env['PATH'], _TAPJS_PROCESSINFO_CWD_: cwd, PORT: port, ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...account
  })
  let out = ''
  let err = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => { out += text })
  child.stderr.setEncoding('utf8').on('data', (text: string) => { err += text })
  const ended = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | NodeJS.Signals)
  const stop = async (signal: NodeJS.Signals = 'SIGTERM'): Promise<number | NodeJS.Signals> => {
    child.kill(signal)
    return await ended
  }
  t.teardown(async () => { await stop('SIGKILL') })
  return { origin: `http://127.0.0.1:${port}`, out: () => out, err: () => err, ended, stop }
}

/** As `npm start`, until it serves. */
async function start (t: Test, settings: Record<string, string> = {}, options: Options = {}): Promise<Running> {
  return await served(await run(t, 'start', settings, options))
}

/** Until it serves. */
async function served (running: Running): Promise<Running> {
  const deadline = Date.now() + START_TIMEOUT_MS
  let over = false
  running.ended.finally(() => { over = true })
  while (!await answers(`${running.origin}/readyz`)) {
    if (over || Date.now() > deadline) throw new Error(`the service did not start: ${running.err()}`)
    await sleep(20)
  }
  return running
}

async function answers (address: string): Promise<boolean> {
  return await fetch(address).then(({ status }) => status === 200, () => false)
}

/** It ended with code 1, said one thing on standard error, and nothing of it is a stack or a password. */
async function failed (t: Test, { ended, err, stop }: Running, says: RegExp, lines = 1): Promise<void> {
  const late = setTimeout(stop, START_TIMEOUT_MS)
  t.equal(await ended, 1)
  clearTimeout(late)
  t.match(err(), says)
  t.equal(err().trim().split('\n').length, lines, err())
  t.notMatch(err(), /\n +at |node:internal|secret/)
}

function folder (t: Test, parent = tmpdir()): string {
  const path = mkdtempSync(join(parent, 'petstore-start-'))
  t.teardown(() => {
    if (existsSync(path)) chmodSync(path, 0o755)
    rmSync(path, { recursive: true, force: true })
  })
  return path
}

async function openAccount (origin: string): Promise<string> {
  const answer = await fetch(`${origin}/accounts`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"name": "A store"}' })
  return (await answer.json() as { apiKey: string }).apiKey
}

/** The request that a greeting asks to paste, as fetch takes it: `curl -H 'Name: value' address`. */
function pasted (text: string): [address: string, options: { headers: Record<string, string> }] {
  const command = /^ *curl (.*)$/m.exec(text)?.[1] ?? ''
  const headers = Object.fromEntries([...command.matchAll(/-H '([^:]+): ([^']+)'/g)].map(([, name, value]) => [name, value]))
  return [command.split(' ').at(-1)!, { headers }]
}

t.test('the first start opens a demo store and prints its key once, with a request that works', { skip: database !== 'sqlite' && 'only in the SQLite file that nobody named' }, async (t) => {
  const cwd = folder(t)
  const first = await start(t, {}, { cwd })
  t.ok(existsSync(join(cwd, 'petstore.db')), 'the database is in the working directory')
  t.equal(first.err().match(/psk_\w+/g)?.length, 2, 'the key, and the request with it')
  t.notMatch(first.out(), 'psk_', 'nothing of it is logged')
  const [address, options] = pasted(first.err())
  t.ok(address.startsWith(first.origin), address)
  const pets = await (await fetch(address, options)).json() as unknown[]
  t.equal(pets.length, 20, 'a page of pets')
  const curl = spawnSync('bash', ['-c', /^ *curl .*$/m.exec(first.err())![0]], { encoding: 'utf8' })
  if (curl.status === 0) t.same(JSON.parse(curl.stdout), pets, 'as pasted into a shell')
  for (const [path, least] of [['/categories', 3], ['/store/orders', 3], ['/inventory', 15]] as const) {
    const rows = await (await fetch(`${first.origin}${path}`, options)).json() as unknown[]
    t.ok(rows.length >= least, `${rows.length} at ${path}`)
  }
  t.equal(await first.stop(), 0)

  const started = Date.now()
  const second = await start(t, {}, { cwd })
  t.comment(`the second start took ${Date.now() - started} ms`)
  t.equal(second.err(), '', 'no key')
  t.equal((await fetch(`${second.origin}${new URL(address).pathname}`, options)).status, 200, 'the first is still good')
  t.equal(await second.stop(), 0)
})

t.test('a store that somebody named, or that has an account, is no place for a demo', { skip: database !== 'sqlite' && 'as on SQLite' }, async (t) => {
  const cwd = folder(t)
  const named = await start(t, { DATABASE_URL: 'file:./named.db' }, { cwd })
  t.equal(named.err(), '', 'named')
  await openAccount(named.origin)
  await named.stop()
  const used = await start(t, { DATABASE_URL: 'file:./named.db', DEMO: 'true' }, { cwd })
  t.equal(used.err(), '', 'used, though DEMO asks for it')
  await used.stop()
  const refused = await start(t, { DEMO: 'false' }, { cwd })
  t.equal(refused.err(), '', 'DEMO=false')
  await refused.stop()
  const empty = await start(t, { DATABASE_URL: '' }, { cwd })
  t.match(empty.err(), 'psk_', 'an empty DATABASE_URL names nothing')
})

t.test('a start that ended before its key was seen is made up for by the next, which opens no second store', { skip: database !== 'sqlite' && 'as on SQLite' }, async (t) => {
  const cwd = folder(t)
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.teardown(() => { other.close() })
  const { port } = other.address() as AddressInfo
  await failed(t, await run(t, 'start', { PORT: String(port) }, { cwd }), /port is in use.*PORT/)
  for (let i = 0; i < 2; i++) {
    const next = await start(t, {}, { cwd })
    const [address, options] = pasted(next.err())
    // Only the last one's key is used: until then nobody may have seen any.
    if (i === 1) t.same((await (await fetch(`${address}?limit=100`, options)).json() as Array<{ id: number }>).length, 21)
    t.equal(await next.stop(), 0)
  }
  t.equal((await start(t, {}, { cwd })).err(), '', 'a key was used')
})

t.test('DEMO=true opens a demo store in any empty database', async (t) => {
  const DATABASE_URL = await freshDatabase(t)
  const { origin, err } = await start(t, { DATABASE_URL, DEMO: 'true', BASE_PATH: '/v1' })
  const [address, options] = pasted(err())
  t.equal(address, `${origin}/v1/pets`)
  t.equal((await fetch(address, options)).status, 200)
})

t.test('an empty database is migrated when the setting or the kind of database says so', async (t) => {
  const DATABASE_URL = await emptyDatabase(t)
  const settings = { DATABASE_URL, MIGRATE_ON_START: 'true' }
  const { origin, err } = await start(t, settings)
  t.match(await openAccount(origin), /^psk_/)
  t.equal(err(), '')
  t.equal((await fetch(`${origin}/livez`)).status, 200)
})

t.test('a pending migration stops a start that may not apply it, and npm run migrate applies it', async (t) => {
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

t.test('wrong settings stop the start with one message that lists them all', async (t) => {
  const settings = { PORT: 'x', SIGNUP: 'maybe', DATABASE_URL: 'mysql://ada:secret@h/d', PET_READ_SUNSET: '2020-01-01' }
  for (const script of ['start', 'migrate']) {
    const running = await run(t, script, settings)
    await failed(t, running, /^These settings are wrong:\n/, 5)
    for (const name of Object.keys(settings)) t.match(running.err(), new RegExp(`^  ${name} .*must`, 'm'))
  }
})

t.test('a port in use, or an address that is not ours, is said in one line', async (t) => {
  const DATABASE_URL = await freshDatabase(t)
  const { origin } = await start(t, { DATABASE_URL })
  await failed(t, await run(t, 'start', { DATABASE_URL, PORT: new URL(origin).port }), /port is in use.*PORT/)
  await failed(t, await run(t, 'start', { DATABASE_URL, METRICS_PORT: new URL(origin).port }), /METRICS_PORT \d+ is in use/)
  await failed(t, await run(t, 'start', { DATABASE_URL, HOST: '192.0.2.1' }), /HOST/)
  t.ok(await answers(`${origin}/readyz`), 'who was there goes on')
})

t.test('a SQLite file that cannot be used is said in one line', { skip: database !== 'sqlite' && 'there is no file' }, async (t) => {
  const cwd = folder(t)
  writeFileSync(join(cwd, 'text.db'), 'Dear diary, today the cat sat on the keyboard again. '.repeat(50))
  writeFileSync(join(cwd, 'corrupt.db'), Buffer.concat([Buffer.from('SQLite format 3\0'), Buffer.alloc(8000, 7)]))
  mkdirSync(join(cwd, 'folder.db'))
  const table: Array<[file: string, says: RegExp]> = [
    ['./missing/petstore.db', /folder.*does not exist.*DATABASE_URL/],
    ['./folder.db', /cannot be opened.*DATABASE_URL/],
    ['./text.db', /DATABASE_URL.*damaged or no SQLite/],
    ['./corrupt.db', /DATABASE_URL.*damaged or no SQLite/]
  ]
  for (const [file, says] of table) await failed(t, await run(t, 'start', { DATABASE_URL: `file:${file}` }, { cwd }), says)
  await failed(t, await run(t, 'migrate', { DATABASE_URL: `file:${table[0]![0]}` }, { cwd }), table[0]![1])
})

t.test('a SQLite file that may not be written is said in one line', { skip: database !== 'sqlite' && 'there is no file' }, async (t) => {
  const account = restricted()
  if (account === undefined) {
    t.pass('', { skip: 'root may write everything, and another account may not read this checkout' })
    return
  }
  // The runner's own temporary folder is closed to others.
  const cwd = folder(t, process.getuid?.() === 0 ? '/tmp' : undefined)
  chmodSync(cwd, 0o777)
  writeFileSync(join(cwd, 'empty.db'), '')
  writeFileSync(join(cwd, 'migrated.db'), readFileSync((await freshDatabase(t)).slice('file:'.length)))
  mkdirSync(join(cwd, 'closed'))
  for (const file of ['empty.db', 'migrated.db']) chmodSync(join(cwd, file), 0o444)
  chmodSync(join(cwd, 'closed'), 0o555)
  const table: Array<[file: string, says: RegExp]> = [
    ['./empty.db', /may not be written.*DATABASE_URL/],
    ['./migrated.db', /may not be written.*DATABASE_URL/],
    ['./closed/petstore.db', /cannot be opened or created.*DATABASE_URL/]
  ]
  for (const [file, says] of table) await failed(t, await run(t, 'start', { DATABASE_URL: `file:${file}` }, { cwd, account }), says)
})

/** An account for whom permissions count and who can read this checkout, if there is one. */
function restricted (): Options['account'] {
  if (process.getuid?.() !== 0) return {}
  const nobody = { uid: 65534, gid: 65534 }
  const { status } = spawnSync(process.execPath, ['--check', join(ROOT, 'dist/cli.js')], { ...nobody, stdio: 'ignore' })
  return status === 0 ? nobody : undefined
}

t.test('a PostgreSQL that cannot be used is said in one line', { skip: database !== 'postgresql' && 'there is no server' }, async (t) => {
  const url = new URL(await freshDatabase(t))
  const other = (change: (url: URL) => void): string => {
    const changed = new URL(url)
    change(changed)
    return changed.href
  }
  const closed = await freePort()
  const table: Array<[url: string, says: RegExp]> = [
    [other((url) => { url.port = String(closed) }), /cannot be reached.*DATABASE_URL/],
    [other((url) => { url.hostname = 'nowhere.invalid' }), /cannot be reached.*DATABASE_URL/],
    [other((url) => { url.password = 'secret' }), /refuses.*DATABASE_URL/],
    [other((url) => { url.username = 'secret' }), /refuses.*DATABASE_URL/],
    [other((url) => { url.pathname = '/nothing' }), /no database of the name.*DATABASE_URL/]
  ]
  for (const [DATABASE_URL, says] of table) {
    const running = await run(t, 'start', { DATABASE_URL })
    await failed(t, running, says)
    t.notOk(running.err().includes(url.password), 'no password')
  }
  await failed(t, await run(t, 'migrate', { DATABASE_URL: table[0]![0] }), table[0]![1])
})

t.test('dist/server.js may be started by itself', async (t) => {
  const { stop, origin } = await served(await run(t, 'node dist/server.js', { DATABASE_URL: await freshDatabase(t) }))
  t.ok(await answers(`${origin}/readyz`))
  t.equal(await stop(), 0)
  const { ended, err } = await run(t, 'node dist/server.js', { PORT: 'none' })
  t.equal(await ended, 1)
  t.match(err(), /PORT/)
})

t.test('SIGTERM and SIGINT end the service with code 0', async (t) => {
  const DATABASE_URL = await freshDatabase(t)
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    const { stop, err, origin } = await start(t, { DATABASE_URL })
    t.equal(await stop(signal), 0, signal)
    t.equal(err(), '')
    t.notOk(await answers(`${origin}/livez`))
  }
})

t.test('what went wrong inside is in the log, with the id of the request, and nowhere else', async (t) => {
  const DATABASE_URL = await freshDatabase(t)
  const { origin, out, stop } = await start(t, { DATABASE_URL })
  const key = await openAccount(origin)
  const onlooker = await openDatabase({ url: DATABASE_URL, pool: 2, timeout: 5_000 })
  await onlooker.writer.$executeRawUnsafe('DROP TABLE messages')
  await onlooker.close()
  const answer = await fetch(`${origin}/messages`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'request-id': 'find-me' },
    body: '{"message": "between us"}'
  })
  t.same({ status: answer.status, body: await answer.json() }, {
    status: 500,
    body: { code: 'internal_error', message: 'Something went wrong on our side. Quote the Request-Id when you report it.', status: 500 }
  })
  await stop()
  const lines = out().trim().split('\n').map((line) => JSON.parse(line) as { requestId?: string, level: number, err?: { message: string, stack: string } })
  const line = lines.find(({ requestId, level }) => requestId === 'find-me' && level === 50)
  t.match(line?.err, { message: /messages/, stack: /\bat / })
  for (const secret of [key, key.slice(12), 'between us', 'Bearer', 'secret']) t.notOk(out().includes(secret), 'no key, header or body is logged')
})
