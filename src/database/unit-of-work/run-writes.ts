import { Unauthorized, isApiError } from '../../errors.ts'
import { timeText, type AccountClocks } from '../account-clocks.ts'
import type { Database } from '../database.ts'
import type { Dialect } from '../dialect.ts'
import { classifyError } from '../error-classification.ts'
import {
  ACCOUNT_DELETED, mergeChanges, type Changes, type CommandSuccess, type CompletedCommand, type EventLog,
  type QueuedCommand
} from '../group-commit/command.ts'
import { answerOf, type CommittedGroup } from '../group-commit/group-transaction.ts'
import { IdempotencyKeyLocked } from '../group-commit/idempotency-records.ts'
import { runAll, type Connection, type OwnStatement } from '../statements.ts'
import { AccountRows, IdentityMap } from './account-rows.ts'
import { claimsOf, responsesOf, type Replay } from './idempotency.ts'
import { loadsOf } from './load.ts'
import { createdBy, savesOf } from './save.ts'
import type { Write } from './write.ts'

export interface RunWritesOptions {
  /** The names of all tables of accounts, in the order in which rows are locked. */
  tables: readonly string[]
  eventLog: EventLog
  clocks: AccountClocks
  /** Maximum time to wait for a row that another process has locked, in ms; by default that of the connection. */
  lockTimeoutMs?: number | undefined
}

/** A queued write. */
export type QueuedWrite = QueuedCommand & { command: Write<unknown, unknown> }

/**
 * Runs the writes of a group in one transaction, which is one unit of work: one message to the database locks and loads
 * all rows, the writes decide in memory, one after the other, and a second message stores what has changed, and
 * commits. The caller gives the answers.
 *
 * @throws IdempotencyKeyLocked when another process keeps a key of the group locked
 */
export async function runWrites (
  database: Database, group: readonly QueuedWrite[], options: RunWritesOptions
): Promise<CommittedGroup> {
  const { dialect } = database
  return await database.transact(async ({ connection }) => {
    const map = new IdentityMap()
    const answers: Array<() => void> = []
    const { fresh, offsets } = await load(connection, dialect, group, map, options, answers)
    // After the accounts were locked: their clocks are not moved any more.
    const startedMs = Date.now()
    const timeOf = (account: number | null, ms = 0): string =>
      timeText(startedMs + (account === null ? 0 : offsets.get(account) ?? 0) + ms)
    const { completed, refused } = decide(fresh, map, offsets, timeOf, answers)

    const changes: Changes = {}
    for (const { success } of completed) mergeChanges(changes, success.changes ?? {})
    const events = options.eventLog(dialect, completed, timeOf)
    const responses = completed.map(({ entry, success: { record, etag } }) => ({ entry, record, etag }))
    const saves = savesOf(dialect, options.tables, map)
    const rows = await commit(connection, [...saves, ...events.statements, ...responsesOf(dialect, responses, refused)])
    mergeChanges(changes, events.changesOf(rows.slice(saves.length)))
    return { answers, changes }
  })
}

interface Loaded {
  /** The writes to decide about. */
  fresh: QueuedWrite[]
  /** How far the clocks of the writers' accounts are ahead, in ms; deleted accounts are missing. */
  offsets: Map<number, number>
}

/** Sends the first message. Adds the answers of repeated requests. */
async function load (
  connection: Connection, dialect: Dialect, group: readonly QueuedWrite[], map: IdentityMap,
  { tables, clocks, lockTimeoutMs }: RunWritesOptions, answers: Array<() => void>
): Promise<Loaded> {
  const statements: OwnStatement[] = []
  if (lockTimeoutMs !== undefined && dialect.hasRowLocks) {
    statements.push({ sql: `SELECT set_config('lock_timeout', '${lockTimeoutMs}ms', true)`, values: [] })
  }
  const accounts = [...new Set(group.flatMap(({ context: { account } }) => account ?? []))]
  const [ofAccounts] = add([{ sql: accountsSql(dialect), values: [JSON.stringify(accounts.map((id) => ({ id })))] }])
  const keyed = group.filter(({ context }) => context.idempotency !== undefined)
  const claims = keyed.length === 0 ? undefined : claimsOf(dialect, keyed)
  const ofClaims = claims && add(claims.statements)
  const loads = loadsOf(dialect, tables, group.flatMap(({ command, input, context: { account } }) =>
    account === null || command.needs === undefined ? [] : [{ account, needs: command.needs(input) }]),
  createdBy(group.map(({ command }) => command)), map)
  const ofLoads = add(loads.map(({ statement }) => statement))

  const rows = await runAll(connection, statements).catch((error: unknown) => {
    const at = (error as { statement?: number }).statement
    const isClaim = ofClaims !== undefined && (at === undefined || at === ofClaims[claims!.claim])
    if (isClaim && classifyError(error) === 'conflict') {
      throw new IdempotencyKeyLocked('a key is in use', { cause: error })
    }
    throw error
  })
  const offsets = new Map<number, number>()
  for (const { id, ahead } of rows[ofAccounts!] as Array<{ id: number, ahead: number }>) {
    clocks.advance(id, ahead * 1000)
    offsets.set(id, ahead * 1000)
  }
  loads.forEach(({ onRows }, i) => { onRows(rows[ofLoads[i]!] as Array<Record<string, unknown>>) })
  const replays = claims?.replaysOf(ofClaims!.map((i) => rows[i]!)) ?? new Map<QueuedCommand, Replay>()
  for (const [entry, result] of replays) {
    answers.push(() => { 'code' in result ? entry.reject(result) : entry.resolve(result) })
  }
  return { fresh: group.filter((entry) => !replays.has(entry)), offsets }

  /** Adds statements, and returns their positions. */
  function add (added: OwnStatement[]): number[] {
    return added.map((statement) => statements.push(statement) - 1)
  }
}

/** Decides about the writes in order of arrival. Adds their answers. */
function decide (
  fresh: readonly QueuedWrite[], map: IdentityMap, offsets: ReadonlyMap<number, number>,
  timeOf: (account: number | null) => string, answers: Array<() => void>
): { completed: CompletedCommand[], refused: QueuedCommand[] } {
  const views = new Map<number | null, AccountRows>()
  const completed: CompletedCommand[] = []
  const refused: QueuedCommand[] = []
  for (const entry of fresh) {
    const { command, input, context: { account, rejection } } = entry
    try {
      if (account !== null && !offsets.has(account)) throw new Unauthorized(ACCOUNT_DELETED)
      if (rejection !== undefined) throw rejection
      let rows = views.get(account)
      if (rows === undefined) views.set(account, rows = new AccountRows(map, account, timeOf(account)))
      const success: CommandSuccess<unknown> = map.attempt(() => command.decide(input, rows))
      completed.push({ entry, success })
      answers.push(answerOf(entry, success))
    } catch (error) {
      if (!isApiError(error)) throw error
      refused.push(entry)
      answers.push(() => { entry.reject(error) })
    }
  }
  return { completed, refused }
}

/** As `runAll`. Commits in the same round trip, where there is one. */
async function commit (connection: Connection, statements: readonly OwnStatement[]): Promise<object[][]> {
  return connection.runAndCommit === undefined
    ? await runAll(connection, statements)
    : await connection.runAndCommit(statements)
}

/**
 * The accounts of the writers: none is deleted, and none of their clocks is moved, until the end of the transaction.
 * PostgreSQL evaluates the condition again after it waited for a lock: an account that was deleted is not found.
 */
function accountsSql (dialect: Dialect): string {
  const ids = `SELECT i.id FROM ${dialect.jsonRows('i', { id: 'bigint' })}`
  return `
    SELECT a.id, a.clock_offset_seconds AS ahead
    ${dialect.fromByIds('accounts', 'a', 'id', ids)} AND a.deleted_at IS NULL
    ${dialect.hasRowLocks ? `ORDER BY a.id ${dialect.forKeyShare}` : ''}`
}
