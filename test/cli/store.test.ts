import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startApp } from '../support/app.ts'
import { build, folder, petstore } from '../support/cli.ts'
import { freshDatabase } from '../support/database.ts'
import { newCategory } from '../support/fixtures.ts'

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
