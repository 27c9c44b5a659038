import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Database } from '../../src/database/database.ts'

/** What an account stores, as the service counts it, and as its rows are. */
export interface StoredBytes {
  counted: number
  actual: number
}

/**
 * Returns what each account stores, without those that are deleted: nothing counts for them, while their rows go. The
 * migration that began to count has the sum over all rows but the journal's.
 */
export async function storedBytes ({ prisma, dialect }: Database): Promise<StoredBytes[]> {
  const migrations = join('prisma', dialect.name, 'migrations')
  const folder = readdirSync(migrations).find((name) => name.endsWith('_stored_bytes'))!
  const script = readFileSync(join(migrations, folder, 'migration.sql'), 'utf8')
  const sum = /UPDATE accounts SET stored_bytes = (.*);/s.exec(script)![1]!
  const rows = await prisma.$queryRawUnsafe<Array<Record<keyof StoredBytes, bigint>>>(`
    SELECT stored_bytes AS counted,
      ${sum} + coalesce((SELECT bytes FROM journals WHERE account_id = accounts.id), 0) AS actual
    FROM accounts WHERE deleted_at IS NULL ORDER BY id`)
  return rows.map(({ counted, actual }) => ({ counted: Number(counted), actual: Number(actual) }))
}
