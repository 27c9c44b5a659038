import type { Config } from '../config.ts'
import { commitOptions, createResources } from '../resources.ts'
import { Committer, type Commit } from '../database/group-commit/committer.ts'
import { openDatabase } from '../database/open-database.ts'
import type { Database } from '../database/database.ts'
import { createReads } from '../database/read-batching.ts'
import type { Read, ReadView } from '../database/reads/query.ts'
import { OperationalError } from '../operational-error.ts'

/** An open database, with the same queries and commands as the service. */
export interface OpenDatabase {
  database: Database
  read: Read
  readView: ReadView
  commit: Commit
}

/** Maximum duration of a statement or a commit: no client waits for it, and large batches are slow on a busy disk. */
const TIMEOUT_MS = 120_000

export type UseDatabase = (database: OpenDatabase) => Promise<void>

/** Opens the database for a function and closes it afterwards. The caller must have verified the migrations. */
export async function withDatabase (config: Config, use: UseDatabase): Promise<void> {
  const limits = { timeout: TIMEOUT_MS, queueLimit: config.QUEUE_LIMIT }
  const database = await openDatabase({ url: config.DATABASE_URL, pool: config.DATABASE_POOL, ...limits })
  const { commit, close } = new Committer(database, { ...limits, ...commitOptions(createResources(config)) })
  try {
    await use({ database, ...createReads(database, limits), commit })
  } finally {
    await close()
    await database.close()
  }
}

/** @throws OperationalError if the account does not exist */
export async function requireAccount ({ database }: OpenDatabase, account: number): Promise<void> {
  const found = await database.prisma.account.findUnique({
    where: { id: account, deletedAt: null }, select: { id: true }
  })
  if (found === null) throw new OperationalError(`Account ${account} does not exist.`)
}

/**
 * Prints the key of a new record. Nothing else goes to standard output, so that a script can read it:
 * KEY=$(petstore …). With `json` the whole record goes there.
 */
export function showKey (heading: string, record: { apiKey: string }, json: boolean): void {
  process.stderr.write(`${heading} The API key is shown only once:\n`)
  process.stdout.write(`${json ? JSON.stringify(record, null, 2) : record.apiKey}\n`)
}
