import pg from 'pg'
import { classifyError } from '../error-classification.ts'
import { LOCK_WAIT_MS, type MigrationSession } from '../migrations/session.ts'
import { connectionOf, schemaOf, SERVER_TIMEOUT_MS } from './connection-url.ts'
import { refuseTransactionPooler } from './pooler.ts'
import { prepareSession } from './session.ts'

/** The key of the advisory lock: that of `prisma migrate deploy`. */
const ADVISORY_LOCK = 72707369

/** @throws an error with the kind `DatabaseNotReachable`, if so: a HOST can have no address, too */
export async function openSession (url: string): Promise<MigrationSession> {
  const client = new pg.Client({ ...connectionOf(url), connectionTimeoutMillis: SERVER_TIMEOUT_MS })
  // A lost connection fails its statements.
  client.on('error', () => {})
  const close = async (): Promise<void> => { await client.end().catch(() => {}) }
  try {
    await client.connect()
    // Before the settings, which such a pooler loses.
    await refuseTransactionPooler(client, url)
    // A migration takes as long as it takes, whatever the role presets.
    await prepareSession(client, url, { settings: ['statement_timeout=0', 'lock_timeout=0'], canMissSchema: true })
  } catch (error) {
    await close()
    if (classifyError(error) === 'unavailable') Object.assign(error as Error, { kind: 'DatabaseNotReachable' })
    throw error
  }
  const rows = async (sql: string): Promise<object[]> => (await client.query<object>(sql)).rows
  const script = async (sql: string): Promise<void> => { await client.query(sql) }
  return {
    rows,
    script,
    begin: async () => {
      await script(`
        BEGIN; SET LOCAL lock_timeout = ${LOCK_WAIT_MS}; SELECT pg_advisory_xact_lock(${ADVISORY_LOCK});
        SET LOCAL lock_timeout = 0`)
      // Most users may use their schema, and create none.
      const [exists] = await rows('SELECT 1 WHERE current_schema() IS NOT NULL')
      if (exists === undefined) await script(`CREATE SCHEMA IF NOT EXISTS ${client.escapeIdentifier(schemaOf(url))}`)
    },
    commit: async () => { await script('COMMIT') },
    close
  }
}
