import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startApp } from '../support/app.ts'
import { build, folder, petstore, type Ended } from '../support/cli.ts'
import { freshDatabase } from '../support/database.ts'
import { newCategory } from '../support/fixtures.ts'
import { storedBytes } from '../support/stored-bytes.ts'

t.before(build)

t.test('store export and import copy the records of a store', async (t) => {
  const url = await freshDatabase(t)
  const env = { DATABASE_URL: url }
  const { openAccount, withKey } = await startApp(t, { DATABASE_URL: url })
  const [ada, bob] = [await openAccount(), await openAccount()]
  await ada.post('/lab/reset', { sample: { pets: 30, seed: 7 } })
  await newCategory(bob, 'Gone')
  const { body: hers } = await ada.get('/lab/state')

  const exported = await petstore(t, ['store', 'export', '--account', String(ada.account)], { env })
  t.match(exported, { code: 0, err: '' })
  t.match(JSON.parse(exported.out.split('\n')[0]!), { type: 'category', name: 'Dogs' })
  const file = join(folder(t), 'store.ndjson')
  writeFileSync(file, exported.out)

  const records = exported.out.trimEnd().split('\n').length
  const imported = await petstore(t, ['store', 'import', file, '--account', String(bob.account)], { env })
  t.match(imported, { code: 0, out: '', err: `Imported ${records} records to account ${bob.account}.\n` })
  const { body: his } = await bob.get('/lab/state')
  t.same([his.contentHash, his.counts], [hers.contentHash, hers.counts])
  t.same((await bob.get('/lab/snapshots')).body, [])
  t.same((await bob.get('/events')).body.at(-1).type, 'store.replaced')

  const created = await petstore(t, ['store', 'import', file, '--json'], { env })
  t.equal(created.code, 0, created.err)
  const { id, apiKey } = JSON.parse(created.out) as { id: number, apiKey: string }
  t.equal((await withKey(apiKey, id).get('/lab/state')).body.contentHash, hers.contentHash)
  const again = await petstore(t, ['store', 'import', file, '--json', '--account', String(id)], { env })
  t.same(JSON.parse(again.out), { account: id, counts: hers.counts })

  const broken = join(folder(t), 'broken.ndjson')
  writeFileSync(broken, `${readFileSync(file, 'utf8')}{"type":"pet"}\n`)
  const refused = await petstore(t, ['store', 'import', broken, '--account', String(bob.account)], { env })
  t.match(refused, { code: 2, out: '', err: `Line ${records + 1}: id is required.\n` })
  t.equal((await bob.get('/lab/state')).body.contentHash, hers.contentHash, 'nothing changed')
  const missing = await petstore(t, ['store', 'import', `${file}.none`, '--account', String(bob.account)], { env })
  t.match(missing, { code: 1, out: '', err: /no such file/ })
  for (const args of [['export'], ['import', file]]) {
    const unknown = await petstore(t, ['store', ...args, '--account', '999999'], { env })
    t.match(unknown, { code: 1, out: '', err: 'Account 999999 does not exist.\n' })
  }
})

t.test('a store import that fails leaves nothing behind', async (t) => {
  const url = await freshDatabase(t)
  const { app: { database: { prisma } }, openAccount } = await startApp(t, { DATABASE_URL: url })
  const ada = await openAccount()
  const accountId = ada.account!
  const file = (text: string): string => {
    const path = join(folder(t), 'store.ndjson')
    writeFileSync(path, text)
    return path
  }
  const valid = file('{"type":"category","id":1,"name":"Cats"}\n')
  const importTo = async (file: string, ...args: string[]): Promise<Ended> =>
    await petstore(t, ['store', 'import', file, ...args], { env: { DATABASE_URL: url } })

  const broken = file('\n')
  const refusal = `${broken} is not valid JSON: line 1: it is empty.\n`
  t.match(await importTo(broken), { code: 1, out: '', err: refusal })
  t.match(await importTo(file('{"type":"pet"}\n')), { code: 2, out: '', err: 'Line 1: id is required.\n' })
  t.equal(await prisma.account.count(), 1, 'no account')
  const none = join(folder(t), 'none.db')
  const options = { env: { DATABASE_URL: `file:${none}` } }
  t.match(await petstore(t, ['store', 'import', file('{"type":"pet"}\n')], options), { code: 2 })
  t.notOk(existsSync(none), 'no database')

  await prisma.category.createMany({ data: Array.from({ length: 10_001 }, () => ({ accountId, name: 'x' })) })
  const large = await importTo(valid, '--account', String(accountId))
  t.match(large, { code: 1, out: '', err: /^The store has more than 10000 records/ })
  t.same((await ada.get('/lab/snapshots')).body, [], 'no snapshot')
  t.equal(await prisma.snapshotRow.count(), 0)
})

t.test('store import needs no place for another snapshot', async (t) => {
  const url = await freshDatabase(t)
  const { app: { database }, openAccount } = await startApp(t, { DATABASE_URL: url })
  const ada = await openAccount()
  for (let i = 0; i < 20; i++) t.equal((await ada.post('/lab/snapshots', {})).status, 201)
  const exported = join(folder(t), 'store.ndjson')
  writeFileSync(exported, '{"type":"category","id":1,"name":"Cats"}\n')
  for (const args of [['--account', String(ada.account)], []]) {
    t.match(await petstore(t, ['store', 'import', exported, ...args], { env: { DATABASE_URL: url } }), { code: 0 })
  }
  t.match((await ada.get('/categories')).body, [{ name: 'Cats' }])
  t.equal((await ada.get('/lab/snapshots')).body.length, 20)
  for (const { counted, actual } of await storedBytes(database)) t.equal(counted, actual)
})
