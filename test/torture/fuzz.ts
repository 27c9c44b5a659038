import { migrate } from '../../src/database/migrations/migrate.ts'
import { runFuzz } from '../fuzz/run.ts'
import type { ScenarioContext } from './harness.ts'

/** Sends valid and invalid requests, generated from the document, to this database and to SQLite. */
export async function fuzz ({ report, freshUrl, sqliteUrl }: ScenarioContext): Promise<void> {
  const url = await freshUrl()
  const urls = url.startsWith('file:') ? [url] : [url, sqliteUrl()]
  for (const each of urls) await migrate(each)
  const results = await runFuzz({ urls, requests: 20_000, repeat: process.env['FUZZ_SEED'] })
  const { requests, valid, accepted, refused, operations, failure } = results
  report.requests += requests * urls.length
  report.rounds++
  report.notes.push(`${operations.size} operations, ${requests} requests to each of ${urls.length} database(s): ` +
    `${accepted} of ${valid} valid ones accepted, ${refused} invalid ones refused`)
  if (failure !== undefined) report.violations.push(failure)
}
