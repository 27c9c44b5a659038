import { Unauthorized, isApiError } from '../../errors.ts'
import { timeText } from '../account-clocks.ts'
import type { Database } from '../database.ts'
import { ACCOUNT_DELETED, type CompletedCommand, type EventLog, type QueuedCommand } from '../group-commit/command.ts'
import { mergeChanges, type Changes, type CommandSuccess } from './success.ts'
import { answerOf, type CommittedGroup } from '../group-commit/group-transaction.ts'
import { AccountRows, IdentityMap, type Row } from './account-rows.ts'
import { sendFirstMessage, type FirstMessageOptions } from './first-message.ts'
import { responsesOf } from './idempotency.ts'
import { loadsOf } from './load.ts'
import { createdBy, savesOf } from './save.ts'
import { StoredBytes } from './stored-bytes.ts'
import type { Write } from './write.ts'

export interface RunWritesOptions extends FirstMessageOptions {
  /** The names of all tables of accounts, in the order in which rows are locked. */
  tables: readonly string[]
  eventLog: EventLog
  /** Maximum bytes that an account stores; 0 is no limit. */
  storedBytesLimit: number
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
  return await database.transact(async (transaction) => {
    const map = new IdentityMap()
    const answers: Array<() => void> = []
    const accounts = [...new Set(group.flatMap(({ context: { account } }) => account ?? []))]
    const needed = group.flatMap(({ command, input, context: { account } }) =>
      account === null || command.needs === undefined ? [] : [{ account, needs: command.needs(input) }])
    const loads = loadsOf(dialect, options.tables, needed, createdBy(group.map(({ command }) => command)), map)
    const statements = loads.map(({ statement }) => statement)
    const { eventLog } = options
    const first = { ...options, hasSubscriber: eventLog.hasSubscriber('a.id') }
    const { fresh, offsets, stored, rows: loaded, isSubscribed } =
      await sendFirstMessage(transaction.run, dialect, group, accounts, statements, first, answers)
    loads.forEach(({ onRows }, i) => { onRows(loaded[i] as Row[]) })
    // After the accounts were locked: their clocks are not moved any more.
    const startedMs = Date.now()
    const timeOf = (account: number | null, ms = 0): string =>
      timeText(startedMs + (account === null ? 0 : offsets.get(account) ?? 0) + ms)
    const bytes = map.storedBytes = new StoredBytes(options.storedBytesLimit, stored)
    const { completed, refused } = decide(fresh, map, bytes, offsets, timeOf, answers)

    const changes: Changes = {}
    for (const { success } of completed) mergeChanges(changes, success.changes ?? {})
    // A subscriber that another transaction adds meanwhile begins with the next events.
    const mayBeSubscribed = isSubscribed || [...map.tables.keys()].some(({ name }) => name === eventLog.subscribers)
    const responses = responsesOf(dialect, completed, refused, bytes)
    const events = eventLog.write(dialect, completed, timeOf, mayBeSubscribed, bytes)
    const saves = savesOf(dialect, options.tables, map)
    const rows = await transaction.commit([...saves, ...events.statements, ...responses])
    mergeChanges(changes, events.changesOf(rows.slice(saves.length)))
    return { answers, changes }
  })
}

/** Decides about the writes in order of arrival. Adds their answers. */
function decide (
  fresh: readonly QueuedWrite[], map: IdentityMap, bytes: StoredBytes, offsets: ReadonlyMap<number, number>,
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
      const success: CommandSuccess<unknown> = map.attempt(() => {
        const earlier = account === null ? 0 : bytes.of(account)
        const result = command.decide(input, rows)
        const refusal = account !== null && bytes.of(account) > earlier ? bytes.refusalOf(account) : undefined
        if (refusal !== undefined) throw refusal
        return result
      })
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
