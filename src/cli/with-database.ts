import type { TSchema } from '@sinclair/typebox'
import type { Config } from '../config.ts'
import { createCommitter, type Commit } from '../database/group-commit/committer.ts'
import { openDatabase, type Database } from '../database/open-database.ts'
import { createRead, type Read } from '../database/read-batching.ts'
import { OperationalError } from '../operational-error.ts'
import { buildValidatorCompiler } from '../http/validator-compiler.ts'

/** What a command of the command line works on: the same reads and commands as the service, in a process of its own. */
export interface OpenDatabase {
  database: Database
  read: Read
  commit: Commit
}

/** How long a statement or a commit may take, in ms: nobody waits behind a command, and a batch of many rows is slow on a busy disk. */
const PATIENCE_MS = 120_000

/** Lends the store of the settings' database, whose migrations somebody has seen to. */
export async function withDatabase (config: Config, use: (store: OpenDatabase) => Promise<void>): Promise<void> {
  const limits = { timeout: PATIENCE_MS, queueLimit: config.QUEUE_LIMIT }
  const database = await openDatabase({ url: config.DATABASE_URL, pool: config.DATABASE_POOL, ...limits })
  const { commit, close } = createCommitter(database, limits)
  try {
    await use({ database, read: createRead(database, limits), commit })
  } finally {
    await close()
    await database.close()
  }
}

/** @throws OperationalError when there is none */
export async function requireAccount ({ database }: OpenDatabase, account: number): Promise<void> {
  const found = await database.reader.account.findUnique({ where: { id: account }, select: { id: true } })
  if (found === null) throw new OperationalError(`There is no account ${account}.`)
}

/** What the same fields would have to be over HTTP. @throws ValidationFailed */
export function valid<T> (schema: TSchema, fields: Record<string, unknown>): T {
  const given = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
  const judged = buildValidatorCompiler({})({ schema: schema as object, httpPart: 'body' })(given)
  if ('error' in judged) throw judged.error
  return judged.value as T
}

/** The key alone on standard output, so that a script may take it: KEY=$(petstore …). */
export function showKey (told: string, apiKey: string): void {
  process.stderr.write(`${told} This is its API key; it is shown only now:\n`)
  process.stdout.write(`${apiKey}\n`)
}
