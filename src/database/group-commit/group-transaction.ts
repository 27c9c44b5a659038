import { Unauthorized } from '../../errors.ts'
import { REAL_TIME, type AccountClocks } from '../account-clocks.ts'
import type { Database } from '../database.ts'
import type { Dialect } from '../dialect.ts'
import type { OwnStatement } from '../statements.ts'
import { idOf, type Table } from '../table.ts'
import { sendFirstMessage } from '../unit-of-work/first-message.ts'
import { responsesOf } from '../unit-of-work/idempotency.ts'
import {
  ACCOUNT_DELETED, type Command, type CompletedCommand, type EventLog, type QueuedCommand, type RowLock
} from './command.ts'
import { mergeChanges, type Changes, type CommandSuccess } from '../unit-of-work/success.ts'
import { StoredBytes } from '../unit-of-work/stored-bytes.ts'
import { createTransaction, type Transaction } from './transaction.ts'

export interface GroupTransactionOptions {
  /** All tables of accounts, in the order in which rows are locked. */
  tables: readonly Table[]
  eventLog: EventLog
  /** Maximum bytes that an account stores; by default there is no limit. */
  storedBytesLimit?: number
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

/**
 * Runs commands with statements of their own in one transaction. The caller gives the answers, once COMMIT has
 * returned.
 */
export async function runInTransaction (
  database: Database, group: QueuedPerform[],
  { tables, eventLog, clocks = REAL_TIME, lockTimeoutMs, storedBytesLimit = 0 }: GroupTransactionOptions
): Promise<CommittedGroup> {
  const { dialect } = database
  return await database.transact(async (transaction) => {
    const answers: Array<() => void> = []
    const accounts = new Set(group.flatMap(({ command, input, context: { account } }) =>
      [...account === null ? [] : [account], ...command.accounts?.(input) ?? []]))
    const lock = group.some(({ command }) => command.locksAccount) ? 'update' : 'key share'
    const rowLocks = rowLocksOf(dialect, tables, group)
    const { fresh, offsets, stored } = await sendFirstMessage(
      transaction.run, dialect, group, [...accounts], rowLocks, { clocks, lockTimeoutMs, lock }, answers)
    const bytes = new StoredBytes(storedBytesLimit, stored)
    const tx = createTransaction(transaction.run, dialect, tables, clocks, offsets, bytes)
    const accepted: QueuedPerform[] = []
    const rejected: QueuedCommand[] = []
    for (const entry of fresh) {
      const { account, rejection } = entry.context
      const error = account === null || offsets.has(account)
        ? rejection ?? (account !== null && entry.command.stores ? bytes.refusalOf(account) : undefined)
        : new Unauthorized(ACCOUNT_DELETED)
      if (error === undefined) {
        accepted.push(entry)
      } else {
        rejected.push(entry)
        answers.push(() => { entry.reject(error) })
      }
    }
    const { completed, refused } = await runCommands(tx, accepted, answers)
    const changes: Changes = {}
    for (const { success } of completed) mergeChanges(changes, success.changes ?? {})
    const responses = responsesOf(dialect, completed, [...rejected, ...refused], bytes)
    const { statements, changesOf } = eventLog.write(dialect, completed, tx.now, true, bytes)
    const rows = await tx.run([...statements, ...responses])
    if (statements.length > 0) mergeChanges(changes, changesOf(rows))
    return { answers, changes }
  })
}

/**
 * Returns the statements that lock the rows which commands declare: tables in the order of their registration, and ids
 * ascending, so that two groups never wait for each other. A row stands for its children, too.
 *
 * @throws when a table is not registered
 */
function rowLocksOf (dialect: Dialect, tables: readonly Table[], group: readonly QueuedPerform[]): OwnStatement[] {
  const byTable = new Map<string, { table: RowLock['table'], ids: Set<number> }>()
  for (const { command, input } of group) {
    for (const { table, ids } of command.locks?.(input) ?? []) {
      const locked = byTable.get(table.name) ?? { table, ids: new Set() }
      byTable.set(table.name, locked)
      for (const id of ids) locked.ids.add(id)
    }
  }
  const positions = new Map(tables.map(({ name }, i) => [name, i]))
  for (const name of byTable.keys()) {
    if (!positions.has(name)) throw new Error(`rows of ${name} cannot be locked: no resource registers this table`)
  }
  if (!dialect.hasRowLocks) return []
  return [...byTable.values()].sort((a, b) => positions.get(a.table.name)! - positions.get(b.table.name)!)
    .map(({ table, ids }) => {
      const id = idOf(table)
      const wanted = `SELECT i.id FROM ${dialect.jsonRows('i', { id: 'bigint' })}`
      return {
        sql: `SELECT r.${id} ${dialect.fromByIds(table.name, 'r', id, wanted)} ORDER BY r.${id} ${dialect.forUpdate}`,
        values: [JSON.stringify(Array.from(ids, (id) => ({ id })))]
      }
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
