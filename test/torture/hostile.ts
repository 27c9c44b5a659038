import { migrate } from '../../src/database/migrations/migrate.ts'
import { attack } from '../fuzz/run.ts'
import type { Stage } from './harness.ts'

/** Valid and invalid requests, made from the document, to this database and to SQLite beside it. */
export async function hostile ({ report, freshUrl, sqliteUrl }: Stage): Promise<void> {
  const url = await freshUrl()
  const urls = url.startsWith('file:') ? [url] : [url, sqliteUrl()]
  for (const each of urls) await migrate(each)
  const { requests, valid, accepted, refused, operations, failure } = await attack({ urls, requests: 20_000, repeat: process.env['HOSTILE_SEED'] })
  report.requests += requests * urls.length
  report.rounds++
  report.notes.push(`${operations.size} operations, ${requests} requests to each of ${urls.length} database(s): ${accepted} of ${valid} valid ones accepted, ${refused} invalid ones refused`)
  if (failure !== undefined) report.violations.push(failure)
}
