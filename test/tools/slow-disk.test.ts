import { spawnSync } from 'node:child_process'
import t from 'tap'
import { buildFsyncDelay, fsyncDelay } from '../support/fsync-delay.ts'
import { folder, start } from '../start/process.ts'

/** Long beside a request, so that a COMMIT in the main thread shows. */
const DELAY_MS = 150

/** No request takes this long during a write, in ms, if another thread waits for the disk. */
const STOPPED_MS = DELAY_MS * 0.8

const hasCompiler = process.platform === 'linux' && spawnSync('cc', ['--version']).status === 0
const skip = !hasCompiler && 'needs Linux and a C compiler'

t.test('on a slow disk, requests are answered during a COMMIT, and no write is lost', { skip }, async (t) => {
  const place = folder(t)
  const settings = { DATABASE_URL: `file:${place}/petstore.db`, DELIVERY: 'false' }
  const slow = await start(t, { ...settings, ...fsyncDelay(buildFsyncDelay(place)!, DELAY_MS) })
  const account = await post(slow.origin, '/accounts', undefined, { name: 'A store' })
  const key = account.apiKey as string
  const created: number[] = []
  const hasChanged = (): boolean => slow.out().includes('the disk is slow')
  for (let longest = 0; longest > STOPPED_MS || !hasChanged();) {
    if (created.length > 100) throw new Error('all COMMITs stopped the main thread')
    let isCommitted = false
    const write = post(slow.origin, '/categories', key, { name: 'Dogs' }).then(({ id }) => {
      isCommitted = true
      created.push(id as number)
    })
    for (longest = 0; ;) {
      const sentAt = performance.now()
      await (await fetch(`${slow.origin}/livez`)).text()
      longest = Math.max(longest, performance.now() - sentAt)
      if (isCommitted) break
    }
    await write
  }

  const writes = Array.from({ length: 20 }, async () => {
    created.push((await post(slow.origin, '/categories', key, { name: 'Cats' })).id as number)
  })
  await Promise.race(writes)
  await slow.stop('SIGKILL')
  await Promise.allSettled(writes)
  const again = await start(t, settings)
  for (const id of created) {
    const { status } = await fetch(`${again.origin}/categories/${id}`, { headers: { authorization: `Bearer ${key}` } })
    t.equal(status, 200, `category ${id}`)
  }
})

async function post (
  origin: string, path: string, key: string | undefined, body: object
): Promise<Record<string, unknown>> {
  const authorization = key === undefined ? {} : { authorization: `Bearer ${key}` }
  const response = await fetch(origin + path, {
    method: 'POST', headers: { 'content-type': 'application/json', ...authorization }, body: JSON.stringify(body)
  })
  return await response.json() as Record<string, unknown>
}
