import { statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { printable } from '../../src/monitoring/printable.ts'
import { startApp } from '../support/app.ts'
import { build, folder, petstore } from '../support/cli.ts'
import { database } from '../support/database.ts'

t.before(build)

/** What could forge a line, or change the terminal: C0, C1, DEL, bidirectional controls, and line separators. */
const HARMFUL = [
  '\u001b]0;pwned\u0007', '\n', '\r', '\t', '\u007f', '\u0085', '\u009b31m', '\u061c', '\u200e', '\u200f', '\u202a',
  '\u202e', '\u2066', '\u2069', '\u2028', '\u2029'
]

t.test('names of strangers change neither the terminal nor the lines of others', async (t) => {
  const { app, config, openAccount } = await startApp(t)
  const name = `A${HARMFUL.join('x')}Z`
  const owner = await openAccount(name)
  t.equal((await owner.get('/account')).body.name, name, 'the service keeps the name as it is')
  await owner.post('/account/keys', { label: name })
  const names = Array.from({ length: 1_003 }, (_, i) => ({ name: `Store ${i}`, createdAt: new Date() }))
  await app.database.prisma.account.createMany({ data: names })

  const env = { DATABASE_URL: config.DATABASE_URL }
  const accounts = await petstore(t, ['account', 'list'], { env })
  const keys = await petstore(t, ['key', 'list', '--account', String(owner.account)], { env })
  t.equal(accounts.out.split('\n').length, names.length + 2, 'a line for each account, also beyond the first thousand')
  t.match(accounts.out, 'Store 1002')
  t.equal(keys.out.split('\n').length, 3)
  for (const { out } of [accounts, keys]) {
    // eslint-disable-next-line no-control-regex
    t.notMatch(out, /[\0-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029]/)
    t.match(out, 'A\\u001b]0;pwned\\u0007x\\u000ax')
  }
  const listed = await petstore(t, ['account', 'list', '--json'], { env })
  t.equal(JSON.parse(listed.out)[0].name, name, 'JSON is exact')
})

t.test('other texts are printed as they are', async (t) => {
  for (const text of ['Füße', 'שלום', '👩‍👩‍👧 家', 'a\\b "c"', '']) t.equal(printable(text), text)
})

const skip = database !== 'sqlite' && 'only SQLite has files'
t.test('a database and its copy are for their owner alone', { skip }, async (t) => {
  const cwd = folder(t)
  const env = { DATABASE_URL: 'file:store.db' }
  const former = process.umask(0o022)
  t.teardown(() => process.umask(former))
  await petstore(t, ['seed', '--pets', '1'], { cwd, env })
  await petstore(t, ['backup', 'copy.db'], { cwd, env })
  for (const name of ['store.db', 'copy.db']) t.equal(statSync(join(cwd, name)).mode & 0o777, 0o600, name)
})
