import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { explainFailure } from '../../src/start/explain-failure.ts'
import { build, petstore, ROOT } from '../support/cli.ts'
import { database, freshDatabase, hasOwnSqlite } from '../support/database.ts'
import { freePort } from '../support/port.ts'
import { ON_SQLITE, answers, failed, folder, run, start, type Options } from './process.ts'

t.before(build)

t.test('invalid settings stop the start with one message that lists all of them', { skip: ON_SQLITE }, async (t) => {
  const settings = { PORT: 'x', SIGNUP: 'maybe', DATABASE_URL: 'mysql://ada:secret@h/d', PET_READ_SUNSET: '2020-01-01' }
  for (const script of ['start', 'migrate']) {
    const running = await run(t, script, settings)
    await failed(t, running, /^These settings are invalid:\n/, 5)
    for (const name of Object.keys(settings)) t.match(running.err(), new RegExp(`^  ${name} .*must`, 'm'))
  }
})

t.test('a port in use, or an address of another machine, is explained in one line', { skip: ON_SQLITE }, async (t) => {
  const DATABASE_URL = await freshDatabase(t)
  const { origin } = await start(t, { DATABASE_URL })
  await failed(t, await run(t, 'start', { DATABASE_URL, PORT: new URL(origin).port }), /port is in use.*PORT/)
  await failed(
    t,
    await run(t, 'start', { DATABASE_URL, METRICS_PORT: new URL(origin).port }),
    /METRICS_PORT \d+ is in use/
  )
  await failed(t, await run(t, 'start', { DATABASE_URL, HOST: '192.0.2.1' }), /HOST/)
  t.ok(await answers(`${origin}/readyz`), 'the other service continues')
})

t.test(
  'an unusable SQLite file is explained in one line',
  { skip: database !== 'sqlite' && 'there is no file' },
  async (t) => {
    const cwd = folder(t)
    writeFileSync(join(cwd, 'text.db'), 'Dear diary, today the cat sat on the keyboard again. '.repeat(50))
    writeFileSync(join(cwd, 'corrupt.db'), Buffer.concat([Buffer.from('SQLite format 3\0'), Buffer.alloc(8000, 7)]))
    mkdirSync(join(cwd, 'folder.db'))
    const table: Array<[file: string, says: RegExp, lines?: number]> = [
      ['./missing/petstore.db', /folder.*does not exist.*DATABASE_URL/],
      [':memory:', /DATABASE_URL must be file:<path> of a file/, 2],
      ['./a.db?connection_limit=1', /DATABASE_URL must be file:<path> of a file, without parameters/, 2],
      ['./sub/', /DATABASE_URL must be file:<path> of a file/, 2],
      ['./folder.db', /cannot be opened.*DATABASE_URL/],
      ['./text.db', /DATABASE_URL.*damaged or not a SQLite/],
      ['./corrupt.db', /DATABASE_URL.*damaged or not a SQLite/]
    ]
    for (const [file, says, lines] of table) {
      await failed(t, await run(t, 'start', { DATABASE_URL: `file:${file}` }, { cwd }), says, lines)
    }
    await failed(t, await run(t, 'migrate', { DATABASE_URL: `file:${table[0]![0]}` }, { cwd }), table[0]![1])
  }
)

t.test('a missing or unusable package for SQLite is explained by what helps', {
  skip: ON_SQLITE || (hasOwnSqlite() && 'this version of Node has SQLite')
}, async (t) => {
  const cwd = folder(t)
  const DATABASE_URL = `file:${join(cwd, 'petstore.db')}`
  // As `require` fails without the package, and with a package that has nothing for this machine.
  const table: Array<[name: string, error: string, says: RegExp]> = [
    ['missing', "{ code: 'MODULE_NOT_FOUND' }", /Run `npm install @photostructure\/sqlite@1`/],
    ['foreign', "{ message: 'No native build was found for libc=musl\\n    loaded from: /x' }",
      /cannot load it: No native build was found for libc=musl\. Use Node 22\.22\.2, 24\.13\.1 or newer\.$/m]
  ]
  for (const [name, error, says] of table) {
    const file = join(cwd, `${name}.mjs`)
    writeFileSync(file, `
      import Module from 'node:module'
      const load = Module._load
      Module._load = function (request, ...rest) {
        if (request === '@photostructure/sqlite') throw Object.assign(new Error(), ${error})
        return load.call(this, request, ...rest)
      }`)
    const settings = { DATABASE_URL, NODE_OPTIONS: `--import=${pathToFileURL(file).href}` }
    await failed(t, await run(t, 'start', settings), says)
    const { code, out } = await petstore(t, ['doctor'], { env: settings })
    t.match({ code, out }, { code: 1, out: says }, 'doctor knows it before the first start')
  }
})

t.test('an error without an explanation says its reason, and the call that failed', { skip: ON_SQLITE }, async (t) => {
  const table: Array<[error: Error, says: string]> = [
    [new Error('Something broke'), 'Unexpected error: Something broke'],
    [new RangeError(''), 'Unexpected error: RangeError'],
    [
      new Error('\nInvalid `db.$executeRaw()` invocation:\n\n\nRaw query failed. Message: `No file:\n → /a\n → /b`'),
      'Unexpected error in db.$executeRaw(): Raw query failed. Message: `No file: → /a → /b`'
    ],
    [
      new Error('Invalid `db.account.findMany()` invocation in\n/a.ts:1:2\n\n   1 a\n→  2 b\n\nThe reason'),
      'Unexpected error in db.account.findMany(): The reason'
    ]
  ]
  for (const [error, says] of table) t.equal(explainFailure(error), says)
})

t.test(
  'a read-only SQLite file is explained in one line',
  { skip: database !== 'sqlite' && 'there is no file' },
  async (t) => {
    const account = restricted()
    if (account === undefined) {
      t.pass('', { skip: 'root may write everything, and another account may not read this checkout' })
      return
    }
    // Other users cannot open the temporary folder of the test runner.
    const cwd = folder(t, process.getuid?.() === 0 ? '/tmp' : undefined)
    chmodSync(cwd, 0o777)
    writeFileSync(join(cwd, 'empty.db'), '')
    writeFileSync(join(cwd, 'migrated.db'), readFileSync((await freshDatabase(t)).slice('file:'.length)))
    mkdirSync(join(cwd, 'closed'))
    mkdirSync(join(cwd, 'locked/folder'), { recursive: true })
    chmodSync(join(cwd, 'locked'), 0)
    for (const file of ['empty.db', 'migrated.db']) chmodSync(join(cwd, file), 0o444)
    chmodSync(join(cwd, 'closed'), 0o555)
    const table: Array<[file: string, says: RegExp]> = [
      ['./empty.db', /is read-only.*DATABASE_URL/],
      ['./migrated.db', /is read-only.*DATABASE_URL/],
      ['./closed/petstore.db', /cannot be opened or created.*DATABASE_URL/],
      ['./locked/petstore.db', /cannot be opened or created.*DATABASE_URL/],
      ['./locked/folder/petstore.db', /no permission to enter the folder.*DATABASE_URL/]
    ]
    for (const [file, says] of table) { await failed(t, await run(t, 'start', { DATABASE_URL: `file:${file}` }, { cwd, account }), says) }
  }
)

/** Returns a user to whom file permissions apply and who can read this checkout, if there is one. */
function restricted (): Options['account'] {
  if (process.getuid?.() !== 0) return {}
  const nobody = { uid: 65534, gid: 65534 }
  const { status } = spawnSync(process.execPath, ['--check', join(ROOT, 'dist/cli.js')], { ...nobody, stdio: 'ignore' })
  return status === 0 ? nobody : undefined
}

t.test(
  'an unusable PostgreSQL is explained in one line',
  { skip: database !== 'postgresql' && 'there is no server' },
  async (t) => {
    const url = new URL(await freshDatabase(t))
    const other = (change: (url: URL) => void): string => {
      const changed = new URL(url)
      change(changed)
      return changed.href
    }
    const closed = await freePort()
    const table: Array<[url: string, says: RegExp]> = [
      [
        other((url) => {
          url.port = String(closed)
        }),
        /cannot be reached.*DATABASE_URL/
      ],
      [
        other((url) => {
          url.hostname = 'nowhere.invalid'
        }),
        /cannot be reached.*DATABASE_URL/
      ],
      [
        other((url) => {
          url.password = 'secret'
        }),
        /rejects.*DATABASE_URL/
      ],
      [
        other((url) => {
          url.username = 'secret'
        }),
        /rejects.*DATABASE_URL/
      ],
      [
        other((url) => {
          url.pathname = '/nothing'
        }),
        /DATABASE_URL does not exist on the server/
      ],
      [
        other((url) => {
          url.password = ''
        }),
        /asks for a password, and DATABASE_URL has none|rejects the user/
      ],
      [other((url) => { url.searchParams.set('sslmode', 'verify-full') }), /does not offer TLS/],
      [other((url) => { url.search = '?sslrootcert=/missing.pem' }), /A file is missing.*DATABASE_URL/],
      [other((url) => { url.search = `?sslrootcert=${join(ROOT, 'README.md')}` }), /no PEM file|does not offer TLS/]
    ]
    for (const [DATABASE_URL, says] of table) {
      const running = await run(t, 'start', { DATABASE_URL })
      await failed(t, running, says)
      t.notOk(running.err().includes(url.password), 'no password')
    }
    await failed(t, await run(t, 'migrate', { DATABASE_URL: table[0]![0] }), table[0]![1])
  }
)
