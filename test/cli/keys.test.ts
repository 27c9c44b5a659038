// Only on SQLite: checks options and output; the accounts tests check the statements on both databases.

import t from 'tap'
import { isCredential } from '../../src/accounts/api-key.ts'
import { openDatabase } from '../../src/database/open-database.ts'
import { startApp } from '../support/app.ts'
import { build, petstore, startService } from '../support/cli.ts'
import { freshDatabase } from '../support/database.ts'
import { rejectedWithin } from '../support/revocation.ts'

t.before(build)

t.test('a running service accepts new accounts and keys, and rejects revoked keys within 5 seconds', async (t) => {
  const env = { DATABASE_URL: await freshDatabase(t) }
  const { origin } = await startService(t, { ...env, SIGNUP: 'closed' })
  const status = async (key: string, method = 'GET'): Promise<number> =>
    (await fetch(`${origin}/categories`, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(method === 'GET' ? {} : { body: '{"name": "Dogs"}' })
    })).status

  const opened = await petstore(t, ['account', 'create', 'My store', '--email', 'ada@example.com'], { env })
  t.match(opened, { code: 0, err: /^Account \d+ was created\./ })
  const first = opened.out.trim()
  t.ok(isCredential(first), 'standard output contains only the key')
  t.notOk(opened.err.includes(first), 'and printed once')
  const account = /\d+/.exec(opened.err)![0]
  t.equal(await status(first), 200)
  t.match(await (await fetch(`${origin}/account`, { headers: { authorization: `Bearer ${first}` } })).json(), {
    id: Number(account),
    name: 'My store',
    email: 'ada@example.com'
  })

  const made = await petstore(
    t,
    [
      'key',
      'create',
      '--account',
      account,
      '--label',
      'Warehouse scanner',
      '--read-only',
      '--expires-at',
      '2099-01-01T00:00:00Z'
    ],
    { env }
  )
  t.equal(made.code, 0)
  const reader = made.out.trim()
  t.equal(await status(reader), 200)
  t.equal(await status(reader, 'POST'), 403, 'read-only')

  const list = await petstore(t, ['key', 'list', '--account', account], { env })
  t.equal(list.code, 0)
  const lines = list.out.trim().split('\n')
  t.equal(lines.length, 2)
  t.match(
    lines[1],
    new RegExp(`^\\d+ .*psk_${reader.slice(4, 12)}_….*read-only.*expires 2099-01-01T00:00:00.000Z  Warehouse scanner$`)
  )
  t.notOk(list.out.includes(reader.slice(13)), 'no secret')
  const id = /^\d+/.exec(lines[1]!)![0]

  t.match(await petstore(t, ['key', 'revoke', id, '--account', account], { env }), {
    code: 0,
    out: `Key ${id} was revoked.\n`,
    err: ''
  })
  await rejectedWithin(t, 5_000, async () => await status(reader))
  t.equal(await status(first), 200, 'the other key still works')
})

t.test('a failed command exits with code 1 and one line', async (t) => {
  const env = { DATABASE_URL: await freshDatabase(t) }
  const opened = await petstore(t, ['account', 'create', 'A store'], { env })
  const account = /\d+/.exec(opened.err)![0]
  const [, only = ''] = /^(\d+)/.exec((await petstore(t, ['key', 'list', '--account', account], { env })).out) ?? []
  const table: Array<[args: string[], says: RegExp]> = [
    [['key', 'revoke', only, '--account', account], /^This is the last unexpired key that can write\..*\n$/],
    [['key', 'revoke', '999999', '--account', account], /^Your account has no API key with this id\.\n$/],
    [['key', 'list', '--account', '999999'], /^Account 999999 does not exist\.\n$/],
    [['key', 'create', '--account', '999999'], /^Account 999999 does not exist\.\n$/],
    [['seed', '--account', '999999'], /^Account 999999 does not exist\.\n$/]
  ]
  for (const [args, says] of table) {
    t.match(await petstore(t, args, { env }), { code: 1, out: '', err: says }, args.join(' '))
  }
})

t.test('key list prints all pages', async (t) => {
  const { config: { DATABASE_URL }, openAccount } = await startApp(t)
  const ada = await openAccount()
  await Promise.all(Array.from({ length: 99 }, async () => await ada.post('/account/keys', {})))
  const { out } = await petstore(t, ['key', 'list', '--account', String(ada.account)], { env: { DATABASE_URL } })
  t.equal(new Set(out.trim().split('\n')).size, 100)
})

t.test('account list prints all accounts, also those after the first thousand', async (t) => {
  const url = await freshDatabase(t)
  const database = await openDatabase({ url, pool: 2, timeout: 60_000 })
  const account = { name: 'A store', createdAt: new Date() }
  await database.prisma.account.createMany({ data: Array<typeof account>(2_001).fill(account) })
  await database.close()
  const { code, out } = await petstore(t, ['account', 'list'], { env: { DATABASE_URL: url } })
  t.equal(code, 0)
  t.equal(out.trim().split('\n').length, 2_001)
})

t.test('accounts can be listed and deleted, and a running service then rejects their keys', async (t) => {
  const { config: { DATABASE_URL }, withKey } = await startApp(t)
  const env = { DATABASE_URL }
  const json = async (...args: string[]): Promise<any> => {
    const { code, out, err } = await petstore(t, [...args, '--json'], { env })
    t.equal(code, 0, err)
    return JSON.parse(out)
  }
  const ada = await json('account', 'create', 'My store', '--email', 'ada@example.com')
  const ben = await json('account', 'create', 'Other store')
  t.match(ada, { id: Number, name: 'My store', email: 'ada@example.com', createdAt: String, apiKey: /^psk_/ })
  const status = async (key: string): Promise<number> => (await withKey(key).get('/account')).status
  t.equal(await status(ada.apiKey), 200)

  const { apiKey, ...listed } = ada
  t.same((await json('account', 'list'))[0], listed, 'without the key')
  const { out } = await petstore(t, ['account', 'list'], { env })
  t.match(out, new RegExp(`^${ada.id} .*created .*My store  <ada@example.com>\n${ben.id} .*Other store\n$`))

  const key = await json('key', 'create', '--account', String(ada.id), '--label', 'Scanner')
  t.match(key, { id: Number, label: 'Scanner', readOnly: false, apiKey: /^psk_/ })
  const keys = await json('key', 'list', '--account', String(ada.id))
  t.match(keys, [{ prefix: apiKey.slice(4, 12) }, { id: key.id, label: 'Scanner' }])
  t.notOk(JSON.stringify(keys).includes(apiKey.slice(13)), 'no secret')
  t.same(await json('key', 'revoke', String(key.id), '--account', String(ada.id)), { id: key.id, revoked: true })

  t.match(await petstore(t, ['account', 'delete', String(ada.id)], { env }), {
    code: 0, out: `Account ${ada.id} was deleted.\n`, err: ''
  })
  t.match(await json('account', 'list'), [{ id: ben.id }])
  await rejectedWithin(t, 5_000, async () => await status(apiKey))
  t.equal(await status(ben.apiKey), 200)
  t.match(await petstore(t, ['account', 'delete', String(ada.id)], { env }), {
    code: 1, err: `Account ${ada.id} does not exist.\n`
  })
  t.same(await json('account', 'delete', String(ben.id)), { id: ben.id, deleted: true })
  t.same(await json('account', 'list'), [])

  t.match((await json('migrate', '--status'))[0], { name: /^\d{14}_/, state: 'applied' })
  t.match((await json('doctor'))[0], { subject: 'Node', failed: false })
})
