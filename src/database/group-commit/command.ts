import type { FastifyError } from '@fastify/error'
import type { Dialect } from '../dialect.ts'
import type { OwnStatement } from '../statements.ts'
import type { AccountNeeds } from '../unit-of-work/load.ts'
import type { Changes, CommandSuccess } from '../unit-of-work/success.ts'
import type { StoredBytes } from '../unit-of-work/stored-bytes.ts'
import type { Write } from '../unit-of-work/write.ts'
import type { Transaction } from './transaction.ts'

/** The message of `Unauthorized` to a request that was authenticated before its account was deleted. */
export const ACCOUNT_DELETED = 'The account of this API key was deleted'

/** What cannot be decided over a few rows in memory, as a `Write` is: it has statements of its own. */
export type Command<Input, Record> = CommandOptions<Input> & (RunOne<Input, Record> | RunAll<Input, Record>)

interface RunOne<Input, Record> {
  /** Runs the command for one request. */
  run: (tx: Transaction, input: Input) => Promise<CommandResult<Record>>
}

interface RunAll<Input, Record> {
  /**
   * Runs the command for all its requests in the group, in order of arrival, where one statement can serve several. It
   * must leave the rows as if the requests had come one after another.
   *
   * @returns a result for each
   */
  runAll: (tx: Transaction, inputs: Input[]) => Promise<Array<CommandResult<Record>>>
}

interface CommandOptions<Input> {
  name: string
  /**
   * Returns the account that it writes rows of, if there is no writer, and the rows that it decides about. They are
   * locked and loaded before the first command of the group runs.
   */
  needs?: (input: Input) => AccountNeeds
  /**
   * It can take long, or locks whole accounts or rows that only its statements know, and so shares its transaction with
   * no other command: with none at all (`true`), or with requests of the same command only (`'with its kind'`).
   */
  runsAlone?: true | 'with its kind'
  /**
   * Waits until no other write of its account is in flight, and makes later ones wait. The command must run alone:
   * otherwise the others of its group would wait as well.
   */
  locksAccount?: true
  /** It is refused when its account stores more than the limit, as are writes that add to what it stores. */
  stores?: true
}

/** Returns the needs of a command for an input, if it has any. */
export function needsOf<Input> (
  command: Command<Input, unknown> | Write<Input, unknown>, input: Input, account: number | null
): AccountNeeds[] {
  if (command.needs === undefined) return []
  if (!('decide' in command)) return [command.needs(input)]
  return account === null ? [] : [{ account, needs: command.needs(input) }]
}

/** Runs a command for several requests. */
export async function runCommand<Input, Record> (
  tx: Transaction, command: Command<Input, Record>, inputs: Input[]
): Promise<Array<CommandResult<Record>>> {
  if ('runAll' in command) return await command.runAll(tx, inputs)
  const results: Array<CommandResult<Record>> = []
  for (const input of inputs) results.push(await command.run(tx, input))
  return results
}

/** A coded error refuses one input and leaves the others alone; that input must have changed nothing. */
export type CommandResult<Record> = CommandSuccess<Record> | FastifyError

/** The account and the Idempotency-Key of a write. */
export interface WriteContext {
  /** `null` only for what has no account yet. */
  account: number | null
  idempotency?: IdempotencyKey | undefined
  /** Refuses the write, unless it is a replay. */
  rejection?: FastifyError | undefined
}

export interface WriteResult<Record> {
  record: Record
  etag?: string | undefined
  /** Whether it is the answer of an earlier request with the same Idempotency-Key. */
  replayed: boolean
  /** When that request came, by the account's clock, in ms since 1970. */
  firstAt?: number
}

/** A write that waits in the queue or is in flight. */
export interface QueuedCommand {
  command: Command<unknown, unknown> | Write<unknown, unknown>
  input: unknown
  context: WriteContext
  /** When it arrived, as a time of `performance.now()`. */
  since: number
  resolve: (result: WriteResult<unknown>) => void
  reject: (error: unknown) => void
}

/** A queued command that succeeded, before COMMIT. */
export interface CompletedCommand {
  entry: QueuedCommand
  success: CommandSuccess<unknown>
}

/** Writes the events of groups. */
export interface EventLog {
  /** Returns an SQL condition: whether an account, named by an SQL expression, has any subscriber. */
  hasSubscriber: (account: string) => string
  /** The table of the subscribers. */
  subscribers: string
  /**
   * Returns the statements that write the events of a group, when all of its commands have run.
   *
   * @param timeOf returns the time of an account, or the time some ms later
   * @param mayBeSubscribed false if no account of the events has a subscriber
   * @param bytes what the group stores; the statements add it and the events to what the accounts store
   */
  write: (
    dialect: Dialect, completed: readonly CompletedCommand[], timeOf: (account: number, ms?: number) => string,
    mayBeSubscribed: boolean, bytes: StoredBytes
  ) => EventWrites
}

/** Stores that rows of a channel have changed, for processes that miss the announcement. */
export interface ChangeLog {
  channel: string
  /**
   * Returns the statement that stores the ids of a group, which are ascending.
   *
   * @param now the real time
   */
  write: (dialect: Dialect, ids: readonly number[], now: string) => OwnStatement
}

export interface EventWrites {
  statements: OwnStatement[]
  /** Returns what to announce after COMMIT, from the rows of the statements. */
  changesOf: (rows: object[][]) => Changes
}

/** Identifies repetitions of a request. */
export interface IdempotencyKey {
  key: string
  /** A hash over method, path and JSON value of the request. */
  fingerprint: string
}

/** Returns what two requests must share to be the same write. */
export function scopeOf (account: number | null, key: string): string {
  return `${account} ${key}`
}

/** Returns the scope of a write; empty without an Idempotency-Key. */
export function idempotencyScope ({ context: { account, idempotency } }: QueuedCommand): string {
  return idempotency === undefined ? '' : scopeOf(account, idempotency.key)
}
