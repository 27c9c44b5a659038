import { Unauthorized } from '../../errors.ts'
import { REAL_TIME, type AccountClocks } from '../account-clocks.ts'
import type { Database } from '../database.ts'
import type { Table } from '../table.ts'
import {
  ACCOUNT_DELETED, mergeChanges, type Changes, type Command, type CommandSuccess, type CompletedCommand, type EventLog,
  type QueuedCommand
} from './command.ts'
import { claimIdempotencyKeys, storeResponses } from './idempotency-records.ts'
import { lockRowsAndAllocateIds } from './row-locks.ts'
import { createTransaction, type Transaction } from './transaction.ts'

export interface GroupTransactionOptions {
  /** All tables of accounts, in the order in which rows are locked. */
  tables: readonly Table[]
  eventLog: EventLog
  /** The clocks of accounts; by default, all are in real time. */
  clocks?: AccountClocks
  /** Maximum time to wait for a row that another process has locked, in ms; by default that of the connection. */
  lockTimeoutMs?: number | undefined
}

/** A queued command that runs statements of its own. */
export type QueuedPerform = QueuedCommand & { command: Command<unknown, unknown> }

/** What a committed group owes: an answer to each entry, and announcements to other parts of the service. */
export interface CommittedGroup {
  answers: Array<() => void>
  changes: Changes
}

/** Runs a group's commands in one transaction. The caller gives the answers, once COMMIT has returned. */
export async function runInTransaction (
  database: Database,
  group: QueuedPerform[],
  { tables, eventLog, clocks = REAL_TIME, lockTimeoutMs }: GroupTransactionOptions
): Promise<CommittedGroup> {
  return await database.transact(async (access) => {
    const tx = createTransaction(access, database.dialect, tables, clocks)
    const answers: Array<() => void> = []
    if (lockTimeoutMs !== undefined && database.dialect.hasRowLocks) {
      await tx.query(`SELECT set_config('lock_timeout', '${lockTimeoutMs}ms', true)`)
    }
    // A claim locks its account as well, by its foreign key, but less than such a command: of two commands, each would
    // then wait for the other to give up that lock.
    const locksAccount = group.some(({ command }) => command.locksAccount)
    if (locksAccount) await lockRowsAndAllocateIds(tx, group)
    const { fresh, replays } = await claimIdempotencyKeys(tx, group)
    for (const { entry, result } of replays) {
      answers.push(() => { 'code' in result ? entry.reject(result) : entry.resolve(result) })
    }
    if (!locksAccount) await lockRowsAndAllocateIds(tx, fresh)
    const accepted: QueuedPerform[] = []
    const rejected: QueuedCommand[] = []
    for (const entry of fresh) {
      const { account, rejection } = entry.context
      const error = account === null || tx.lockedAccounts.has(account) ? rejection : new Unauthorized(ACCOUNT_DELETED)
      if (error === undefined) {
        accepted.push(entry)
      } else {
        rejected.push(entry)
        answers.push(() => { entry.reject(error) })
      }
    }
    const { completed, refused } = await runCommands(tx, accepted, answers)
    storeResponses(tx, completed, [...rejected, ...refused])
    const changes: Changes = {}
    for (const { success } of completed) mergeChanges(changes, success.changes ?? {})
    const { statements, changesOf, countersOf } = eventLog(database.dialect, completed, tx.now)
    if (statements.length > 0) {
      const rows = await tx.run(statements)
      for (const { id, ahead } of countersOf(rows)) tx.confirmClock(id, ahead * 1000)
      mergeChanges(changes, changesOf(rows))
    }
    await tx.flush()
    return { answers, changes }
  })
}

async function runCommands (
  tx: Transaction, group: QueuedPerform[], answers: Array<() => void>
): Promise<{ completed: CompletedCommand[], refused: QueuedCommand[] }> {
  const completed: CompletedCommand[] = []
  const refused: QueuedCommand[] = []
  const byCommand = new Map<Command<unknown, unknown>, QueuedPerform[]>()
  for (const entry of group) byCommand.set(entry.command, [...byCommand.get(entry.command) ?? [], entry])
  for (const [command, entries] of byCommand) {
    const results = await command.run(tx, entries.map(({ input }) => input))
    entries.forEach((entry, i) => {
      const result = results[i]
      if (result === undefined) throw new Error(`${command.name} has no result for input ${i}`)
      if (result instanceof Error) {
        refused.push(entry)
        answers.push(() => { entry.reject(result) })
      } else {
        completed.push({ entry, success: result })
        answers.push(answerOf(entry, result))
      }
    })
  }
  return { completed, refused }
}

/** Returns what gives a write its answer. */
export function answerOf (entry: QueuedCommand, { record, etag }: CommandSuccess<unknown>): () => void {
  return () => { entry.resolve({ record, etag, replayed: false }) }
}
