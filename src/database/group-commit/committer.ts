import { setTimeout as sleep } from 'node:timers/promises'
import { DatabaseUnavailable, IdempotencyKeyInUse, Overloaded, Unauthorized } from '../../errors.ts'
import type { Instrumentation } from '../../monitoring/instrumentation.ts'
import type { Command, WriteResult, CommandSuccess, QueuedCommand, News, WriteContext } from './command.ts'
import { appendEvents } from '../../events/event-log.ts'
import { classifyError } from '../error-classification.ts'
import { orderIntoBatches, lockRowsAndAllocateIds } from './row-locks.ts'
import { claimIdempotencyKeys, IdempotencyKeyLocked, storeResponses } from './idempotency-records.ts'
import type { Database } from '../open-database.ts'
import { createTransaction } from './transaction.ts'

export type Commit = <Input, Record>(command: Command<Input, Record>, input: Input, context: WriteContext) => Promise<WriteResult<Record>>

export interface CommitOptions {
  /** How many writes may wait before the next is refused. */
  queueLimit: number
  /** How long one may wait, in ms. */
  timeout: number
  /** Told after COMMIT, when there is something to tell. */
  onNews?: (news: News) => void
  instrumentation?: Instrumentation | undefined
}

/** Commands in one transaction at most: bounds its time and its memory. */
const MAX_GROUP = 256

/** A group that met a conflict is tried again this often before its commands go singly. */
const ATTEMPTS = 5

/** How long a write lets others join it, in ms, and waits for the group under way: then it goes on a connection of its own, where there is one. */
const PATIENCE_MS = 20

/** Turns of the event loop in which others may join. Turns without work pass at once, so an idle service does not wait. */
const GATHERING_TURNS = 12

/** How long the writes that nobody waits for, such as a key's use, may take once the service stops, in ms. */
const LAST_WRITES_MS = 1_000

/** How often the queue is looked through for writes that waited too long, in ms. */
const SWEEP_MS = 250

/**
 * Group commit: writes that come within a few turns of the event loop, or while another transaction
 * commits, share one, so that many requests pay for one fsync. A write is answered only after its COMMIT returned.
 *
 * @throws Overloaded when too many wait, DatabaseUnavailable when the outcome is unknown
 */
export function createCommitter (database: Database, { queueLimit, timeout, onNews, instrumentation }: CommitOptions): { commit: Commit, close: () => Promise<void> } {
  let queue: QueuedCommand[] = []
  /** Idempotency keys of the groups under way: a second request waits for the first. */
  const claimed = new Set<string>()
  let running = 0
  /** Whether a group is about to begin. */
  let scheduled = false
  let recall: NodeJS.Timeout | undefined
  /** Told, once the service stops, that the last write was made. */
  let finished: (() => void) | undefined
  instrumentation?.queue('commit', () => queue.length)

  async function commit<Input, Record> (command: Command<Input, Record>, input: Input, context: WriteContext): Promise<WriteResult<Record>> {
    if (queue.length >= queueLimit) throw new Overloaded()
    return await new Promise((resolve, reject) => {
      queue.push({ command, input, context, since: Date.now(), resolve, reject } as QueuedCommand)
      schedule()
    })
  }

  function schedule (): void {
    if (scheduled) return
    scheduled = true
    gather(1)
  }

  /** A busy process has others' requests to answer meanwhile, and the writes among them share the transaction. */
  function gather (turn: number): void {
    setImmediate(() => {
      if (turn < GATHERING_TURNS && running === 0 && queue.length > 0 && queue.length < MAX_GROUP && patience() > 0) {
        gather(turn + 1)
      } else {
        scheduled = false
        begin()
      }
    })
  }

  /** What is left of the oldest write's patience, in ms. */
  function patience (): number {
    return queue[0]!.since + PATIENCE_MS - Date.now()
  }

  function begin (): void {
    while (queue.length > 0 && running < database.writers) {
      // Writes that wait for the group under way share the next one. Only a group that takes long is not waited for.
      if (running > 0 && patience() > 0) {
        recall ??= setTimeout(() => {
          recall = undefined
          schedule()
        }, patience())
        return
      }
      const group = takeGroup()
      if (group.length === 0) return
      running++
      const began = Date.now()
      instrumentation?.batchStarted('commit', began - group[0]!.since)
      runGroup(group).catch((error: unknown) => { rejectAll(group, error) }).finally(() => {
        for (const entry of group) claimed.delete(keyOf(entry))
        running--
        instrumentation?.batchFinished('commit', group.length, Date.now() - began)
        if (queue.length > 0) schedule()
        else if (running === 0) finished?.()
      })
    }
  }

  function takeGroup (): QueuedCommand[] {
    const group: QueuedCommand[] = []
    const left: QueuedCommand[] = []
    for (const entry of queue) {
      const key = keyOf(entry)
      if (group.length === MAX_GROUP || (key !== '' && claimed.has(key))) {
        left.push(entry)
      } else {
        if (key !== '') claimed.add(key)
        group.push(entry)
      }
    }
    queue = left
    return group
  }

  /** A row that somebody else holds must not make a whole group wait for it again and again. */
  function isLate ({ since }: QueuedCommand): boolean {
    return Date.now() - since > timeout
  }

  async function runGroup (group: QueuedCommand[]): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        const { settled, news } = await transact(group)
        for (const settle of settled) settle()
        if (news.accounts.length > 0 || news.due) onNews?.(news)
        return
      } catch (error) {
        const kind = classifyError(error)
        if (kind === 'conflict' && attempt < ATTEMPTS && !isLate(group[0]!)) {
          await sleep(Math.random() * 10 * attempt)
          continue
        }
        if (kind === 'unavailable') return rejectAll(group, new DatabaseUnavailable({ cause: error }))
        if (group.length > 1) return await runSingly(group)
        return rejectAll(group, await reasonOf(group[0]!, error))
      }
    }
  }

  /** One bad command fails its whole transaction; alone, it fails by itself. */
  async function runSingly (group: QueuedCommand[]): Promise<void> {
    for (const entry of group) {
      if (isLate(entry)) entry.reject(new DatabaseUnavailable())
      else await runGroup([entry])
    }
  }

  /** @returns how to answer each entry once COMMIT has returned, and what to tell others then */
  async function transact (group: QueuedCommand[]): Promise<{ settled: Array<() => void>, news: News }> {
    return await database.writer.$transaction(async (prisma) => {
      const tx = createTransaction(prisma, database.dialect)
      const settled: Array<() => void> = []
      const { fresh, replays } = await claimIdempotencyKeys(tx, group)
      for (const { entry, result } of replays) {
        settled.push(() => { 'code' in result ? entry.reject(result) : entry.resolve(result) })
      }
      await lockRowsAndAllocateIds(tx, fresh)
      const done: Array<{ entry: QueuedCommand, done: CommandSuccess<unknown> }> = []
      const failed: QueuedCommand[] = []
      for (const { command, entries } of orderIntoBatches(fresh)) {
        const outcomes = await command.run(tx, entries.map(({ input }) => input))
        entries.forEach((entry, i) => {
          const outcome = outcomes[i]
          if (outcome === undefined) throw new Error(`${command.name} has no outcome for input ${i}`)
          if (outcome instanceof Error) {
            failed.push(entry)
            settled.push(() => { entry.reject(outcome) })
          } else {
            done.push({ entry, done: outcome })
            settled.push(() => { entry.resolve({ record: outcome.record, etag: outcome.etag, replayed: false }) })
          }
        })
      }
      storeResponses(tx, done, failed)
      return { settled, news: await appendEvents(tx, done) }
    })
  }

  /** Why a command failed that was alone in its transaction. */
  async function reasonOf (entry: QueuedCommand, error: unknown): Promise<unknown> {
    if (error instanceof IdempotencyKeyLocked) return new IdempotencyKeyInUse()
    if (classifyError(error) === 'conflict') return new DatabaseUnavailable({ cause: error })
    const { account } = entry.context
    if (account === null) return error
    const row = await database.reader.account.findUnique({ where: { id: account }, select: { id: true } }).catch(() => ({}))
    return row === null ? new Unauthorized('The account of this API key was deleted') : error
  }

  const sweep = setInterval(() => {
    const latest = Date.now() - timeout
    if (queue.length === 0 || queue[0]!.since > latest) return
    const late = queue.filter(({ since }) => since <= latest)
    queue = queue.filter(({ since }) => since > latest)
    rejectAll(late, new DatabaseUnavailable())
  }, SWEEP_MS)
  sweep.unref()

  return {
    commit,
    close: async () => {
      if (queue.length > 0 || running > 0) {
        await Promise.race([new Promise<void>((resolve) => { finished = resolve }), sleep(LAST_WRITES_MS, undefined, { ref: false })])
      }
      clearInterval(sweep)
      clearTimeout(recall)
    }
  }
}

function rejectAll (entries: QueuedCommand[], error: unknown): void {
  for (const entry of entries) entry.reject(error)
}

/** What two requests must share to be the same write; empty without an Idempotency-Key. */
function keyOf ({ context }: QueuedCommand): string {
  return context.idempotency === undefined ? '' : `${context.account} ${context.idempotency.key}`
}
