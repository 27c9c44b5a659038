// Only on SQLite: starts services on SQLite.

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import type { Test } from 'tap'
import { createStore, type Store, type StoreOptions } from '../src/create-store.ts'
import { reachableOrigin } from '../src/http/http-url.ts'
import { build, launch, ROOT } from './support/cli.ts'

/** Gives the test a temporary folder of its own, because other tests create stores meanwhile. @returns its path */
function ownTemporaryFolder (t: Test): string {
  const former = process.env['TMPDIR']
  const folder = mkdtempSync(join(tmpdir(), 'petstore-own-'))
  process.env['TMPDIR'] = folder
  t.teardown(() => {
    if (former === undefined) delete process.env['TMPDIR']
    else process.env['TMPDIR'] = former
    rmSync(folder, { recursive: true, force: true })
  })
  return folder
}

t.test('the address of a service on all addresses is one that a client can call', async (t) => {
  for (const [listening, reachable] of [
    ['http://0.0.0.0:3000', 'http://127.0.0.1:3000'], ['http://[::]:3000', 'http://[::1]:3000'],
    ['http://127.0.0.1:3000', 'http://127.0.0.1:3000'], ['http://[::1]:3000', 'http://[::1]:3000'],
    ['http://10.0.0.0:3000', 'http://10.0.0.0:3000']
  ] as const) t.equal(reachableOrigin(listening), reachable)
})

t.test('createStore starts stores that know nothing of each other, and close() leaves nothing', async (t) => {
  const folder = ownTemporaryFolder(t)
  const began = performance.now()
  const first = await createStore({ name: undefined, settings: undefined } as unknown as StoreOptions)
  t.comment(`a store after ${Math.round(performance.now() - began)} ms`)
  const none = { LOG_LEVEL: undefined, PORT: undefined, DATABASE_URL: undefined }
  const settings = { BASE_PATH: '/v1', LAB: true, HOST: '0.0.0.0', ...none }
  const second = await createStore({ name: 'Second', settings })
  t.match(second.url, /^http:\/\/127\.0\.0\.1:\d+\/v1$/)

  const { id } = await first.client.createCategory({ name: 'Dogs' })
  t.match(await first.client.getCategory(id), { id, name: 'Dogs' })
  t.same(await second.client.listCategories(), [])
  t.match(await second.client.getAccount(), { name: 'Second' })
  const authorized = async ({ url, apiKey }: Store): Promise<number> =>
    (await fetch(`${url}/account`, { headers: { authorization: `Bearer ${apiKey}` } })).status
  t.same([await authorized(first), await authorized(second)], [200, 200])
  t.equal(await authorized({ ...second, apiKey: first.apiKey }), 401)

  await first.close()
  await t.rejects(authorized(first))
  t.equal(await authorized(second), 200)
  await second.close()
  // Other tests of this process make databases of their own.
  t.same(readdirSync(folder).filter((name) => !name.startsWith('petstore-database-')), [])
})

t.test('a store can begin with the records of a file', async (t) => {
  const first = await createStore({ settings: { LAB: true } })
  t.teardown(first.close)
  await first.client.resetStore({ sample: { pets: 20, seed: 7 } })
  const { id } = await first.client.createSnapshot({})
  const file = join(mkdtempSync(join(tmpdir(), 'petstore-file-')), 'store.ndjson')
  t.teardown(() => { rmSync(dirname(file), { recursive: true, force: true }) })
  writeFileSync(file, await first.client.getSnapshotRows(id))
  const expected = (await first.client.getState()).contentHash

  for (const from of [file, pathToFileURL(file)]) {
    const store = await createStore({ from, settings: { LAB: true } })
    t.teardown(store.close)
    t.equal((await store.client.getState()).contentHash, expected)
    t.same(await store.client.listSnapshots(), [])
    const imported = await store.client.importSnapshot(readFileSync(file, 'utf8'))
    t.same(await store.client.getSnapshotDiff((await store.client.restoreSnapshot(imported.id)).id), {
      created: [], changed: [], deleted: []
    })
  }
  const wrong = {} as unknown as string
  await t.rejects(first.client.importSnapshot(wrong), /must be text of the type application\/x-ndjson/)
  const folder = ownTemporaryFolder(t)
  await t.rejects(createStore({ from: `${file}.none` }), /no such file/)
  writeFileSync(file, '{"type":"pet"}\n')
  await t.rejects(createStore({ from: file }), /Line 1: id is required/)
  t.same(readdirSync(folder), [])
})

t.test('a start that fails leaves nothing and says why', async (t) => {
  const folder = ownTemporaryFolder(t)
  await t.rejects(createStore({ settings: { PORT: 'none' } }), /PORT/)
  await t.rejects(createStore({ settings: { PROT: '1' } }), /no setting PROT/)
  await t.rejects(createStore({ settings: { PROCESSES: 2 } }), /PROCESSES is a setting of the command/)
  await t.rejects(createStore({ name: '' }), /name/)
  await t.rejects(createStore({ name: 5 as unknown as string }), /name/)
  const other = createServer().listen(0, '127.0.0.1')
  t.teardown(() => { other.close() })
  await new Promise((resolve) => other.once('listening', resolve))
  const { port } = other.address() as { port: number }
  await t.rejects(createStore({ settings: { PORT: String(port) } }), { code: 'EADDRINUSE' })
  t.same(readdirSync(folder), [])
})

t.test('the examples of the page run', async (t) => {
  build()
  const page = readFileSync(join(ROOT, 'docs/how-to/test-with-a-store.md'), 'utf8')
  // Below the folder of the tests, where Node finds tap.
  const folder = mkdtempSync(join(ROOT, 'test/.test-'))
  t.teardown(() => { rmSync(folder, { recursive: true, force: true }) })
  for (const runner of ['node:test', 'tap', 'The lab', 'What a client left']) {
    const [, example = ''] = new RegExp(`## ${runner}\\n[^#]*?\`\`\`js\\n([^]*?)\`\`\``).exec(page) ?? []
    const file = join(folder, `${runner.replace(/[: ]/, '-')}.mjs`)
    const code = example.replace("'petstore-lab'", `'${pathToFileURL(join(ROOT, 'dist/public-api.js')).href}'`)
    t.not(code, example, `${runner} has an example`)
    writeFileSync(file, code)
    const { code: status, out, err } = await launch(t, process.execPath, [file]).ended
    t.equal(status, 0, `${runner}: ${out}${err}`)
    t.match(out, /^(# pass 1|ℹ pass 1|ok 1 )/m)
  }
})
