import t from 'tap'
import { migrate } from '../../src/database/migrations/migrate.ts'
import { database, freshDatabase } from '../support/database.ts'
import { attack } from './run.ts'

t.setTimeout(600_000)

const REQUESTS = 2_000

t.test('valid and invalid requests for every operation are answered as documented, and alike on both databases', async (t) => {
  const urls = [await freshDatabase(t)]
  if (database === 'postgresql') {
    const url = `file:${t.testdir()}/petstore.db`
    await migrate(url)
    urls.push(url)
  }
  const { requests, accepted, refused, valid, operations, failure } = await attack({ urls, requests: REQUESTS, repeat: process.env['HOSTILE_SEED'] })
  t.equal(failure, undefined)
  t.comment(`${requests} requests: ${accepted} of ${valid} valid ones were accepted, ${refused} invalid ones refused`)
  t.ok(operations.size > 20, `${operations.size} operations`)
  t.ok(accepted > valid / 3, 'most of what is valid meets a store that has what it asks for')
})
