import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyError } from '@fastify/error'
import { DatabaseUnavailable, IdempotencyKeyInUse, Overloaded, Unauthorized } from '../errors.ts'
import { appendEvents, type NewEvent } from './events.ts'
import { failureKind } from './failure.ts'
import { arrange, lockRows, type Rows } from './group.ts'
import { claimKeys, settleKeys, type IdempotencyKey } from './idempotency.ts'
import type { Database } from './open.ts'
import { createSession, type Session } from './session.ts'

/**
 * A write. `run` gets the inputs of every request of this command in the group, in order of arrival,
 * and says what becomes of each: it must leave the rows as if they had come one after another.
 */
export interface Command<Input, Record> {
  name: string
  /** The rows it decides about: locked before it runs, in an order that never crosses another group's. */
  rows?: (input: Input) => Rows
  run: (session: Session, inputs: Input[]) => Promise<Array<Outcome<Record>>>
}

/** A coded error refuses one input and leaves its neighbours alone; it must have changed nothing. */
export type Outcome<Record> = Done<Record> | FastifyError

export interface Done<Record> {
  record: Record
  etag?: string | undefined
  /** What the account's feed shall say of it; none when nothing changed. */
  events?: NewEvent[]
  /** There is something to deliver without an event of its own: whoever delivers for the account looks. */
  wakes?: boolean
}

/** In whose name a write is made. */
export interface Writer {
  /** `null` only for what has no account yet. */
  account: number | null
  idempotency?: IdempotencyKey | undefined
}

export interface Committed<Record> {
  record: Record
  etag?: string | undefined
  /** The answer of an earlier request with the same Idempotency-Key. */
  replayed: boolean
}

export type Commit = <Input, Record>(command: Command<Input, Record>, input: Input, writer: Writer) => Promise<Committed<Record>>

export interface CommitOptions {
  /** How many writes may wait before the next is refused. */
  queueLimit: number
  /** How long one may wait, in ms. */
  timeout: number
  /** Told of the accounts that have new events, after COMMIT. */
  onEvents?: (accounts: number[]) => void
}

export interface Entry {
  command: Command<unknown, unknown>
  input: unknown
  writer: Writer
  since: number
  resolve: (committed: Committed<unknown>) => void
  reject: (error: unknown) => void
}

/** Commands in one transaction at most: bounds its time and its memory. */
const MAX_GROUP = 256

/** A group that met a conflict is tried again this often before its commands go singly. */
const ATTEMPTS = 5

/** How often the queue is looked through for writes that waited too long, in ms. */
const SWEEP_MS = 250

/**
 * Group commit: writes that wait while a transaction commits share the next one, so that many
 * requests pay for one fsync. A write is answered only after its COMMIT returned.
 *
 * @throws Overloaded when too many wait, DatabaseUnavailable when the outcome is unknown
 */
export function createCommit (database: Database, { queueLimit, timeout, onEvents }: CommitOptions): { commit: Commit, close: () => void } {
  let queue: Entry[] = []
  /** Idempotency keys of the groups under way: a second request waits for the first. */
  const claimed = new Set<string>()
  let running = 0
  let scheduled = false

  async function commit<Input, Record> (command: Command<Input, Record>, input: Input, writer: Writer): Promise<Committed<Record>> {
    if (queue.length >= queueLimit) throw new Overloaded()
    return await new Promise((resolve, reject) => {
      queue.push({ command, input, writer, since: Date.now(), resolve, reject } as Entry)
      schedule()
    })
  }

  function schedule (): void {
    if (scheduled) return
    scheduled = true
    setImmediate(() => {
      scheduled = false
      while (running < database.writers) {
        const group = takeGroup()
        if (group.length === 0) return
        running++
        runGroup(group).catch((error: unknown) => { rejectAll(group, error) }).finally(() => {
          for (const entry of group) claimed.delete(keyOf(entry))
          running--
          if (queue.length > 0) schedule()
        })
      }
    })
  }

  function takeGroup (): Entry[] {
    const group: Entry[] = []
    const left: Entry[] = []
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

  async function runGroup (group: Entry[]): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        const { settled, accounts } = await transact(group)
        for (const settle of settled) settle()
        if (accounts.length > 0) onEvents?.(accounts)
        return
      } catch (error) {
        const kind = failureKind(error)
        if (kind === 'conflict' && attempt < ATTEMPTS) {
          await sleep(Math.random() * 10 * attempt)
          continue
        }
        if (kind === 'unavailable') return rejectAll(group, new DatabaseUnavailable({ cause: error }))
        if (group.length > 1) return await runSingly(group)
        return rejectAll(group, await reasonOf(group[0]!, kind, error))
      }
    }
  }

  /** One bad command fails its whole transaction; alone, it fails by itself. */
  async function runSingly (group: Entry[]): Promise<void> {
    for (const entry of group) await runGroup([entry])
  }

  /** @returns how to answer each entry once COMMIT has returned, and the accounts that have new events */
  async function transact (group: Entry[]): Promise<{ settled: Array<() => void>, accounts: number[] }> {
    return await database.writer.$transaction(async (prisma) => {
      const session = createSession(prisma, database.dialect)
      const settled: Array<() => void> = []
      const { fresh, replays } = await claimKeys(session, group)
      for (const { entry, result } of replays) {
        settled.push(() => { 'code' in result ? entry.reject(result) : entry.resolve(result) })
      }
      await lockRows(session, fresh)
      const done: Array<{ entry: Entry, done: Done<unknown> }> = []
      const failed: Entry[] = []
      for (const { command, entries } of arrange(fresh)) {
        const outcomes = await command.run(session, entries.map(({ input }) => input))
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
      await settleKeys(session, done, failed)
      const accounts = new Set(await appendEvents(session, done))
      for (const { entry: { writer: { account } }, done: { wakes } } of done) {
        if (wakes === true && account !== null) accounts.add(account)
      }
      return { settled, accounts: [...accounts] }
    })
  }

  /** Why a command failed that was alone in its transaction. */
  async function reasonOf (entry: Entry, kind: 'conflict' | 'refused', error: unknown): Promise<unknown> {
    if (kind === 'conflict') {
      return entry.writer.idempotency === undefined ? new DatabaseUnavailable({ cause: error }) : new IdempotencyKeyInUse()
    }
    const { account } = entry.writer
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

  return { commit, close: () => { clearInterval(sweep) } }
}

function rejectAll (entries: Entry[], error: unknown): void {
  for (const entry of entries) entry.reject(error)
}

/** What two requests must share to be the same write; empty without an Idempotency-Key. */
function keyOf ({ writer }: Entry): string {
  return writer.idempotency === undefined ? '' : `${writer.account} ${writer.idempotency.key}`
}
