import { Unauthorized, isApiError } from '../../errors.ts'
import { getOrAdd } from '../get-or-add.ts'
import { AccountClocks } from '../account-clocks.ts'
import type { Database } from '../database.ts'
import type { Table } from '../table.ts'
import { AccountRows, IdentityMap, type Row } from '../unit-of-work/account-rows.ts'
import { sendFirstMessage } from '../unit-of-work/first-message.ts'
import { responsesOf, type Replay } from '../unit-of-work/idempotency.ts'
import { loadsOf, type AccountNeeds } from '../unit-of-work/load.ts'
import { createdBy, savesOf } from '../unit-of-work/save.ts'
import type { StoredBytes } from '../unit-of-work/stored-bytes.ts'
import { mergeChanges, type Changes } from '../unit-of-work/success.ts'
import type { Write } from '../unit-of-work/write.ts'
import {
  ACCOUNT_DELETED, needsOf, runCommand, type ChangeLog, type Command, type CompletedCommand, type EventLog,
  type QueuedCommand
} from './command.ts'
import { createTimes, createTransaction, type Transaction } from './transaction.ts'

export interface GroupTransactionOptions {
  /** All tables of accounts, in the order in which rows are locked: parents first. */
  tables: readonly Table[]
  eventLog: EventLog
  changeLog?: ChangeLog | undefined
  /** Maximum bytes that an account stores; by default there is no limit. */
  storedBytesLimit?: number
  /** The clocks of accounts; by default, all are in real time. */
  clocks?: AccountClocks
}

type QueuedWrite = QueuedCommand & { command: Write<unknown, unknown> }

/** A queued command that runs statements of its own. */
type QueuedPerform = QueuedCommand & { command: Command<unknown, unknown> }

/** What a committed group owes: an answer to each entry, and announcements to other parts of the service. */
export interface CommittedGroup {
  answers: Array<() => void>
  changes: Changes
}

/**
 * Runs a group in one transaction: writes that decide in memory, or commands with statements of their own. The first
 * message to the database locks the accounts and claims the Idempotency-Keys. For writes, it also loads all rows. The
 * last one stores what the writes have changed, the events and the responses, and commits. The caller then gives the
 * answers.
 *
 * @param group all of one sort
 * @throws IdempotencyKeyInUse when another process keeps a key of the group locked
 */
export async function runInTransaction (
  database: Database, group: readonly QueuedCommand[],
  { tables, eventLog, changeLog, clocks = new AccountClocks(), storedBytesLimit = 0 }: GroupTransactionOptions
): Promise<CommittedGroup> {
  const { dialect } = database
  const writes = group.filter((entry): entry is QueuedWrite => 'decide' in entry.command)
  const performs = group.filter((entry): entry is QueuedPerform => !('decide' in entry.command))
  return await database.transact(async (transaction) => {
    const map = new IdentityMap()
    const outcomes: Outcomes = { completed: [], refused: [] }
    const needed = group.flatMap(({ command, input, context: { account } }) => needsOf(command, input, account))
    const loads = loadsOf(dialect, tables, needed, createdBy(writes.map(({ command }) => command)), map)
    const lock = performs.some(({ command }) => command.locksAccount) ? 'UPDATE' : 'KEY SHARE'
    const { replays, offsets, bytes, rows: loaded, isSubscribed } = await sendFirstMessage(
      transaction.run, dialect, group, accountsOf(group, needed), loads.map(({ statement }) => statement), lock,
      { clocks, eventLog, storedBytesLimit })
    loads.forEach(({ onRows }, i) => { onRows(loaded[i] as Row[]) })
    map.storedBytes = bytes
    const times = createTimes(clocks, offsets)
    const isDeleted = (account: number | null): boolean => account !== null && !offsets.has(account)
    const accepted = group.filter((entry) => {
      if (replays.has(entry)) return false
      const { account, rejection } = entry.context
      const error = isDeleted(account) ? new Unauthorized(ACCOUNT_DELETED) : rejection
      if (error !== undefined) outcomes.refused.push({ entry, error })
      return error === undefined
    })
    const rowsOf = (account: number | null): AccountRows =>
      new AccountRows(isDeleted(account) ? new IdentityMap() : map, account, times.now(account))
    if (performs.length > 0) {
      const tx = createTransaction(transaction.run, dialect, tables, times, bytes, rowsOf)
      await perform(tx, accepted as QueuedPerform[], outcomes)
    } else {
      decide(accepted as QueuedWrite[], rowsOf, map, bytes, outcomes)
    }

    const { completed, refused } = outcomes
    const changes: Changes = {}
    for (const { success } of completed) mergeChanges(changes, success.changes)
    // The events of commands can be of accounts that only their statements know. A subscriber that another transaction
    // adds meanwhile begins with the next events.
    const mayBeSubscribed = isSubscribed || performs.length > 0 ||
      [...map.tables.keys()].some(({ name }) => name === eventLog.subscribers)
    const responses = responsesOf(dialect, completed, refused.map(({ entry }) => entry), bytes)
    const events = eventLog.write(dialect, completed, times.now, mayBeSubscribed, bytes)
    const logged = [...new Set(changeLog && changes[changeLog.channel])].sort((a, b) => a - b)
    const saves = [
      ...savesOf(dialect, tables, map),
      ...logged.length === 0 ? [] : [changeLog!.write(dialect, logged, times.startedAt)]
    ]
    const rows = await transaction.commit([...saves, ...events.statements, ...responses])
    mergeChanges(changes, events.changesOf(rows.slice(saves.length)))
    return { answers: answersOf(replays, outcomes), changes }
  })
}

/** What became of the writes of a group that are no repetitions. */
interface Outcomes {
  completed: CompletedCommand[]
  refused: Array<{ entry: QueuedCommand, error: Error }>
}

function answersOf (
  replays: ReadonlyMap<QueuedCommand, Replay>, { completed, refused }: Outcomes
): CommittedGroup['answers'] {
  return [
    ...Array.from(replays, ([entry, replay]) => () => {
      if ('code' in replay) entry.reject(replay)
      else entry.resolve(replay)
    }),
    ...completed.map(({ entry, success: { record, etag } }) => () => {
      entry.resolve({ record, etag, replayed: false })
    }),
    ...refused.map(({ entry, error }) => () => { entry.reject(error) })
  ]
}

/** Returns the accounts whose rows the group writes. */
function accountsOf (group: readonly QueuedCommand[], needed: readonly AccountNeeds[]): number[] {
  const accounts = new Set(needed.map(({ account }) => account))
  for (const { context: { account } } of group) if (account !== null) accounts.add(account)
  return [...accounts]
}

/** Decides about the writes in order of arrival. */
function decide (
  writes: readonly QueuedWrite[], rowsOf: (account: number | null) => AccountRows, map: IdentityMap, bytes: StoredBytes,
  outcomes: Outcomes
): void {
  for (const entry of writes) {
    const { command, input, context: { account, idempotency } } = entry
    try {
      const success = map.attempt(() => {
        const earlier = account === null ? 0 : bytes.of(account)
        const success = command.decide(input, rowsOf(account))
        if (account === null) return success
        const rowBytes = bytes.of(account) - earlier
        // Deletions pass, and have no record. A change that adds no text stores its event, and the response to its key.
        const isDeletion = success.record === undefined || rowBytes < 0
        const adds = rowBytes > 0 || success.events?.length || idempotency !== undefined
        const refusal = adds && !isDeletion ? bytes.refusalOf(account) : undefined
        if (refusal !== undefined) throw refusal
        return success
      })
      outcomes.completed.push({ entry, success })
    } catch (error) {
      if (!isApiError(error)) throw error
      outcomes.refused.push({ entry, error: error as Error })
    }
  }
}

/** Runs commands: the entries of each together. */
async function perform (tx: Transaction, entries: readonly QueuedPerform[], outcomes: Outcomes): Promise<void> {
  const byCommand = new Map<Command<unknown, unknown>, QueuedPerform[]>()
  for (const entry of entries) {
    const { command, context: { account } } = entry
    const refusal = account !== null && command.stores ? tx.storedBytes.refusalOf(account) : undefined
    if (refusal !== undefined) outcomes.refused.push({ entry, error: refusal })
    else getOrAdd(byCommand, command, (): QueuedPerform[] => []).push(entry)
  }
  for (const [command, entries] of byCommand) {
    const results = await runCommand(tx, command, entries.map(({ input }) => input))
    entries.forEach((entry, i) => {
      const result = results[i]
      if (result === undefined) throw new Error(`${command.name} has no result for input ${i}`)
      if (result instanceof Error) outcomes.refused.push({ entry, error: result })
      else outcomes.completed.push({ entry, success: result })
    })
  }
}
