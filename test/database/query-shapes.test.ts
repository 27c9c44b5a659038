import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { pageQuery } from '../../src/database/sql/keyset-pagination.ts'
import { petList } from '../../src/pets/queries.ts'
import { startApp } from '../support/app.ts'

const MAX_SHAPES = 500

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

t.test('a client that varies lists does not fill the memory with their statements', async (t) => {
  const { app, openAccount } = await startApp(t)
  const { account } = await openAccount()
  const kept: Array<WeakRef<object>> = []
  for (const filters of [{}, { status: 'sold' }, { categoryId: 1 }, { status: 'sold', categoryId: 1 }]) {
    for (const descending of [false, true]) {
      for (let limit = 1; limit <= 100; limit++) {
        const [query, input] = pageQuery(petList, { limit, descending, after: undefined, filters }, account!)
        await app.read(query, input)
        kept.push(new WeakRef(query))
      }
    }
  }
  await setImmediate()
  collectGarbage()
  const alive = kept.filter((query) => query.deref() !== undefined).length
  t.ok(alive <= MAX_SHAPES, `${alive} of ${kept.length} are in memory`)
})
