import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { migrate } from '../../src/database/migrations/migrate.ts'
import { saveCopy } from '../../src/database/sqlite/backup.ts'
import { startApp } from '../support/app.ts'
import { build, folder, petstore, startService } from '../support/cli.ts'
import { database, emptyDatabase, freshDatabase } from '../support/database.ts'
import { freePort } from '../support/port.ts'

t.before(build)

const onSqlite = { skip: database !== 'sqlite' && 'PostgreSQL has tools of its own' }

t.test('a backup under concurrent writes is consistent and contains all acknowledged writes', onSqlite, async (t) => {
  const env = { DATABASE_URL: await freshDatabase(t) }
  const cwd = folder(t)
  await petstore(t, ['seed', '--pets', '20000'], { env })
  const { origin } = await startService(t, env)
  const { apiKey } = (await (
    await fetch(`${origin}/accounts`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"name": "A store"}'
    })
  ).json()) as { apiKey: string }
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' }
  const acknowledged: string[] = []
  const answered: number[] = []
  const done = new AbortController()
  const writers = Array.from({ length: 8 }, async () => {
    while (!done.signal.aborted) {
      const answer = await fetch(`${origin}/messages`, { method: 'POST', headers, body: '{"message": "Hello"}' })
      answered.push(answer.status)
      acknowledged.push((await answer.json() as { id: string }).id)
    }
  })
  while (acknowledged.length < 50) await new Promise((resolve) => setTimeout(resolve, 10))
  const before = acknowledged.slice()
  const saved = await petstore(t, ['backup', 'copy.db'], { cwd, env })
  const between = acknowledged.length
  done.abort()
  await Promise.all(writers)
  t.match(saved, { code: 0, out: /^Saved \d+\.\d MB to copy\.db\n$/, err: '' })
  t.ok(between > before.length, `${between - before.length} were written meanwhile`)
  t.same([...new Set(answered)], [201], 'and none refused')
  t.same(readdirSync(cwd), ['copy.db'], 'one file, and nothing beside it')

  const copy = `file:${join(cwd, 'copy.db')}`
  t.same(await migrate(copy), [])
  const { withKey, app } = await startApp(t, { DATABASE_URL: copy })
  t.same(await app.database.prisma.$queryRawUnsafe('PRAGMA integrity_check'), [{ integrity_check: 'ok' }])
  const kept = new Set((await app.database.prisma.message.findMany({ select: { id: true } })).map(({ id }) => id))
  t.same(before.filter((id) => !kept.has(id)), [], 'nothing is missing')
  const events = await app.database.prisma.event.findMany({ select: { id: true }, orderBy: { id: 'asc' } })
  t.same(
    events.map(({ id }) => Number(id)),
    Array.from({ length: kept.size }, (_, i) => i + 1),
    'an event for each message, and no gap'
  )
  t.equal((await withKey(apiKey).post('/messages', { message: 'And on' })).status, 201, 'it serves')
})

t.test('a backup flushes the copy, and then the folder with its name', onSqlite, async (t) => {
  const url = await freshDatabase(t)
  const to = folder(t)
  const flushed: string[][] = []
  const handle = await open(to)
  const prototype = Object.getPrototypeOf(handle) as typeof handle
  await handle.close()
  const { sync } = prototype
  prototype.sync = async function (this: typeof handle) {
    flushed.push([(await this.stat()).isDirectory() ? 'folder' : 'file', ...readdirSync(to)])
    await sync.call(this)
  }
  t.teardown(() => { prototype.sync = sync })
  await saveCopy(url, join(to, 'copy.db'))
  t.same(flushed.map(([kind]) => kind), ['file', 'folder'])
  t.same(flushed[1], ['folder', 'copy.db'])
})

t.test('a backup overwrites nothing and explains the conflict', onSqlite, async (t) => {
  const env = { DATABASE_URL: await freshDatabase(t) }
  const cwd = folder(t)
  writeFileSync(join(cwd, 'old.db'), 'precious')
  t.match(await petstore(t, ['backup', 'old.db'], { cwd, env }), {
    code: 1,
    out: '',
    err: /^old\.db exists already\..*\n$/
  })
  t.equal(statSync(join(cwd, 'old.db')).size, 8)
  t.match(await petstore(t, ['backup', 'missing/new.db'], { cwd, env }), {
    code: 1,
    out: '',
    err: /^The folder of missing\/new\.db does not exist\..*\n$/
  })
  t.match(await petstore(t, ['backup', 'new.db'], { cwd, env: { DATABASE_URL: 'file:./nothing.db' } }), {
    code: 1,
    out: '',
    err: /^There is no database at \.\/nothing\.db\..*\n$/
  })
  t.same(readdirSync(cwd), ['old.db'])
})

t.test(
  'backup refers users of PostgreSQL to pg_dump',
  { skip: database !== 'postgresql' && 'as on PostgreSQL' },
  async (t) => {
    t.match(await petstore(t, ['backup', 'x'], { env: { DATABASE_URL: await freshDatabase(t) } }), {
      code: 1,
      out: '',
      err: /^[^\n]*pg_dump[^\n]*\n$/
    })
  }
)

t.test('doctor passes on a healthy database', async (t) => {
  const cwd = folder(t)
  const { code, out, err } = await petstore(t, ['doctor'], { cwd, env: { DATABASE_URL: await freshDatabase(t) } })
  t.same({ code, err }, { code: 0, err: '' }, out)
  for (const line of out.trim().split('\n')) t.match(line, /^ok {6}/)
  t.match(out, /settings.*\n(ok +disk.* MB free .*\n)?ok +database +connected to \w+\nok +migrations.*\nok +writing/)
  t.same(readdirSync(cwd), [])
})

t.test('doctor explains the state of a database before the first start', async (t) => {
  const DATABASE_URL = await emptyDatabase(t)
  const { code, out } = await petstore(t, ['doctor'], { env: { DATABASE_URL } })
  if (database === 'sqlite') {
    t.match(
      { code, out },
      { code: 0, out: /^ok +database +it does not exist yet; the service creates it when it starts$/m }
    )
  } else t.match({ code, out }, { code: 1, out: /^failed +migrations +\d+ pending: .*petstore migrate$/m })
  const strict = await petstore(t, ['doctor'], { env: { DATABASE_URL, MIGRATE_ON_START: 'false' } })
  t.match(strict, { code: 1, out: /^failed.*petstore migrate$/m })
  if (database === 'sqlite') t.notOk(existsSync(DATABASE_URL.slice('file:'.length)), 'and creates none')
})

t.test('doctor explains each failure with its remedy, and exits with code 1', async (t) => {
  const cwd = folder(t)
  writeFileSync(join(cwd, 'text.db'), 'Dear diary, today the cat sat on the keyboard again. '.repeat(50))
  mkdirSync(join(cwd, 'folder.db'))
  const table: Array<[settings: Record<string, string>, says: RegExp]> = [
    [
      { PORT: 'x', SIGNUP: 'maybe' },
      /^failed +settings +These settings are invalid:\n +PORT .*must.*\n +SIGNUP .*must/m
    ],
    [{ PROCESSES: '2' }, /^failed +settings +PROCESSES is "2", but SQLite .*set DATABASE_URL to a PostgreSQL/m],
    [
      { DATABASE_URL: 'file:./missing/petstore.db' },
      /^failed +disk +The folder .*missing does not exist.*DATABASE_URL/m
    ],
    [{ DATABASE_URL: 'file:./text.db' }, /^failed +database .*damaged or not a SQLite/m],
    [{ DATABASE_URL: 'file:./folder.db' }, /^failed +database .*cannot be opened/m],
    [
      { DATABASE_URL: `postgresql://ada:secret@127.0.0.1:${await freePort()}/d` },
      /^failed +database .*cannot be reached.*DATABASE_URL/m
    ]
  ]
  for (const [env, says] of table) {
    const { code, out, err } = await petstore(t, ['doctor'], { cwd, env })
    t.same({ code, err }, { code: 1, err: '' }, JSON.stringify(env))
    t.match(out, says)
    t.equal(out.match(/^(ok|failed) /gm)?.at(-1), 'failed ', 'what depends on it is not checked')
    t.notMatch(out, /secret/)
  }
})

t.test('migrate --status lists applied and pending migrations, and changes nothing', async (t) => {
  const env = { DATABASE_URL: await emptyDatabase(t) }
  const before = await petstore(t, ['migrate', '--status'], { env })
  t.match(before, { code: 1, err: '', out: /^(pending {2}\d{14}_\w+\n)+$/ })
  t.same(await petstore(t, ['migrate', '--status'], { env }), before, 'the same again')
  t.match(await petstore(t, ['migrate'], { env }), { code: 0, err: '', out: /^(Applied \d{14}_\w+\n?)+$/ })
  t.match(await petstore(t, ['migrate', '--status'], { env }), {
    code: 0,
    err: '',
    out: before.out.replaceAll('pending', 'applied')
  })
})
