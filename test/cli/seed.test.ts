import { spawnSync } from 'node:child_process'
import t from 'tap'
import { openDatabase } from '../../src/database/open-database.ts'
import { startApp } from '../support/app.ts'
import { build, CLI, folder, petstore } from '../support/cli.ts'
import { database, emptyDatabase, freshDatabase } from '../support/database.ts'
import { storedBytes } from '../support/stored-bytes.ts'

t.before(build)

async function rows (url: string, sql: string): Promise<Array<Record<string, unknown>>> {
  const { prisma, close } = await openDatabase({ url, pool: 2, timeout: 60_000 })
  try {
    return (await prisma.$queryRawUnsafe<Array<Record<string, unknown>>>(sql)).map((row) =>
      Object.fromEntries(
        Object.entries(row).map(([name, value]) => [name, typeof value === 'bigint' ? Number(value) : value])
      )
    )
  } finally {
    await close()
  }
}

// A batch has 20,000 pets.

t.test('seed creates a store with valid records and without events', async (t) => {
  const url = await freshDatabase(t)
  const { code, out, err } = await petstore(t, ['seed', '--pets', '21000'], { env: { DATABASE_URL: url } })
  t.equal(code, 0, err)
  const { app, withKey } = await startApp(t, { DATABASE_URL: url })
  const ada = withKey(out.trim())
  t.match((await ada.get('/categories')).body, [
    { name: 'Dogs' },
    { name: 'Cats' },
    { name: 'Birds' },
    { name: 'Fish' },
    { name: 'Small animals' }
  ])
  for (const path of ['/pets?limit=100', '/pets?status=sold', '/inventory?status=pending']) {
    t.ok((await ada.get(path)).body.length >= 20, path)
  }
  t.same((await ada.get('/events')).body, [])
  for (const { counted, actual } of await storedBytes(app.database)) t.equal(counted, actual)

  const stock = await rows(
    url,
    `
    SELECT CAST(p.status AS text) AS status, s.quantity, count(*) AS pets FROM pets p LEFT JOIN inventory_items s ON s.pet_id = p.id GROUP BY 1, 2`
  )
  t.equal(stock.reduce((sum, { pets }) => sum + Number(pets), 0), 21_000)
  t.same(
    stock.filter(({ status, quantity }) => quantity === 0 && status !== 'sold'),
    [],
    'an empty stock without orders is sold'
  )
  for (const status of ['available', 'pending', 'sold']) t.ok(stock.some((row) => row['status'] === status), status)
  t.ok(stock.some(({ quantity }) => quantity === null), 'some were never counted')
  t.ok(stock.every(({ pets }) => Number(pets) > 1_000), 'each kind of shelf is common')

  const pet = (await ada.get('/pets?status=available&limit=100')).body.at(-1)
  t.equal((await ada.post('/pets', { name: 'Rex', categoryId: pet.categoryId })).status, 201, 'ids go on')
  t.equal((await ada.patch(`/inventory/${pet.id}`, { quantity: 3 })).status, 200)
  t.equal((await ada.post('/store/orders', { petId: pet.id, quantity: 1 })).status, 201)
})

t.test('seed adds pets to an existing store, in its own categories, and changes no other store', async (t) => {
  const { config: { DATABASE_URL }, openAccount } = await startApp(t)
  const [ada, ben] = [await openAccount(), await openAccount()]
  await ada.post('/categories', { name: 'Snakes' })
  const { code, out } = await petstore(t, ['seed', '--pets', '100', '--account', String(ada.account)], {
    env: { DATABASE_URL }
  })
  t.same({ code, out }, { code: 0, out: '' }, 'no new key')
  t.match(
    (await ada.get('/categories')).body.map(({ name }: { name: string }) => name),
    ['Snakes', 'Cats', 'Birds', 'Fish', 'Small animals']
  )
  t.equal((await ada.get('/pets?limit=100')).body.length, 100)
  t.equal((await ada.get('/events')).body.length, 1, 'the category made by hand')
  t.same((await ben.get('/pets')).body, [])
  const again = await petstore(t, ['seed', '--pets', '1', '--account', String(ada.account), '--json'], {
    env: { DATABASE_URL }
  })
  t.same(JSON.parse(again.out), { account: ada.account, pets: 1 })
  t.equal((await ada.get('/categories')).body.length, 5, 'no more categories')
})

t.test('the first use on SQLite needs no migrate; on PostgreSQL it asks for it', async (t) => {
  const env = { DATABASE_URL: await emptyDatabase(t) }
  const { code, err } = await petstore(t, ['seed', '--pets', '1'], { env })
  if (database === 'sqlite') t.equal(code, 0, err)
  else t.match({ code, err }, { code: 1, err: /^The database misses/ })
})

const onSqlite = { skip: database === 'postgresql' && 'as on SQLite' }

t.test('progress is a bar in a terminal, otherwise plain lines', onSqlite, async (t) => {
  const env = { DATABASE_URL: await freshDatabase(t) }
  const { err } = await petstore(t, ['seed', '--pets', '40000'], { env })
  const lines = err.trim().split('\n').slice(1)
  t.equal(lines.shift(), '0 of 40000 pets')
  t.match(lines.at(-2), /^40000 of 40000 pets, \d+\/s$/)
  t.match(lines.at(-1), /^Added 40000 pets to account \d+\.$/)
  // eslint-disable-next-line no-control-regex -- the test searches for them
  t.notMatch(err, /[\x00-\x09\x0b-\x1f]/, 'no escape sequences')

  const { status, stdout, error } = spawnSync(
    'script',
    ['-qec', `"${process.execPath}" "${CLI}" seed --pets 40000`, '/dev/null'],
    { cwd: folder(t), env: { PATH: process.env['PATH'], TERM: 'xterm', ...env }, encoding: 'utf8' }
  )
  if (error !== undefined) {
    t.pass('', { skip: 'there is no program `script` to make a terminal with' })
    return
  }
  t.equal(status, 0)
  t.match(stdout, /-{24} 0 of 40000 pets\r/)
  t.match(stdout, /={24} 40000 of 40000 pets, \d+\/s/)
})
