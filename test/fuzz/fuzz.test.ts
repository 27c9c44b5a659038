// Only on PostgreSQL: sends each request to services on both databases and compares the answers.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { migrate } from '../../src/database/migrations/migrate.ts'
import { database, freshDatabase } from '../support/database.ts'
import { runFuzz } from './run.ts'

const REQUESTS = 1_000

t.test('the service answers valid and invalid requests as documented, and alike on both databases', async (t) => {
  const urls = [await freshDatabase(t)]
  if (database === 'postgresql') {
    const folder = mkdtempSync(join(tmpdir(), 'petstore-fuzz-'))
    t.teardown(() => { rmSync(folder, { recursive: true, force: true }) })
    const url = `file:${join(folder, 'petstore.db')}`
    await migrate(url)
    urls.push(url)
  }
  const report = await runFuzz({ urls, requests: REQUESTS, repeat: process.env['FUZZ_SEED'] })
  const { requests, accepted, refused, valid, operations, failure } = report
  t.equal(failure, undefined)
  t.comment(`${requests} requests: ${accepted} of ${valid} valid ones were accepted, ${refused} invalid ones refused`)
  t.ok(operations.size > 20, `${operations.size} operations`)
  t.ok(accepted > valid / 3, 'more than a third of the valid requests name records that exist')
})
