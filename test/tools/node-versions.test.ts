import { spawnSync } from 'node:child_process'
import t from 'tap'
import { build } from '../support/cli.ts'
import { freshDatabase } from '../support/database.ts'
import { folder, start } from '../start/process.ts'

/** The versions that package.json names, besides the one that runs the tests. */
const VERSIONS = ['20.19', '22', '24'].filter((version) => !`v${version}.`.startsWith(process.version.split('.')[0]!))

t.before(build)

t.test('the service runs on the other versions of Node', {
  skip: process.env['CI'] === undefined && 'downloads Node; CI does it'
}, async (t) => {
  for (const version of VERSIONS) {
    await t.test(version, async (t) => {
      const { stdout, stderr } = spawnSync('npm', [
        'exec', '--yes', `--package=node@${version}`, '--', 'node', '-p', 'process.execPath'
      ], { cwd: folder(t), encoding: 'utf8' })
      const node = stdout.trim().split('\n').at(-1)!
      t.match(node, /node/, stderr)
      const { origin, stop } = await start(t, { DATABASE_URL: await freshDatabase(t) }, { node })
      const { apiKey } = await post(`${origin}/accounts`, { name: 'A store' }) as { apiKey: string }
      const { id: categoryId } = await post(`${origin}/categories`, { name: 'Dogs' }, apiKey) as { id: number }
      const pet = await post(`${origin}/pets`, { name: 'Rex', categoryId }, apiKey)
      t.match(pet, { name: 'Rex', categoryId, status: 'available' })
      t.equal(await stop(), 0)
    })
  }
})

async function post (address: string, body: object, apiKey?: string): Promise<unknown> {
  const response = await fetch(address, {
    method: 'POST',
    headers: {
      'content-type': 'application/json', ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` })
    },
    body: JSON.stringify(body)
  })
  return await response.json()
}
