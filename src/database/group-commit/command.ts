import type { FastifyError } from '@fastify/error'
import type { Dialect, InputType } from '../dialect.ts'
import type { Step } from '../steps.ts'
import type { Table } from '../table.ts'
import type { Transaction } from './transaction.ts'

/** The message of `Unauthorized` to a request that was authenticated before its account was deleted. */
export const ACCOUNT_DELETED = 'The account of this API key was deleted'

/**
 * A write. `run` gets the inputs of all requests of this command in the group, in order of arrival, and returns a
 * result for each: it must leave the rows as if the requests had come one after another.
 */
export interface Command<Input, Record> {
  name: string
  /** Returns accounts that it writes rows of, beside the writer's: they are locked in the same way. */
  accounts?: (input: Input) => number[]
  /** Returns the rows that it decides about; they are locked before the first command of the group runs. */
  locks?: (input: Input) => RowLock[]
  /** The table in which each input creates one row at most: ids are allocated before the command runs. */
  creates?: Table
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
  /** Passes the first statement of `run` to `tx.prefetch`: it travels with the row locks. */
  prefetch?: (tx: Transaction, inputs: Input[]) => void
  /** The usual case of one input. */
  fastPath?: FastPath<Input, Record>
  run: (tx: Transaction, inputs: Input[]) => Promise<Array<CommandResult<Record>>>
}

/**
 * The usual case of a command: the database decides and writes in a few steps, and the process knows the result. It
 * must leave the same rows and give the same result as `run`, which handles all other cases.
 */
export interface FastPath<Input, Record> {
  /** The inputs of the steps, beside `account` and `now`, the time of the account. */
  inputs: { [name: string]: InputType }
  /** Returns `undefined` if the case is not the usual one. */
  inputOf: (input: Input, now: string) => object | undefined
  /**
   * Returns the steps behind the one that locks the account, in the order in which rows are locked. The last is `made`:
   * the new row, with its `id`. No step writes if the case is not the usual one.
   */
  steps: (dialect: Dialect) => Step[]
  event: {
    type: string
    /** The JSON text of its `data`, with references to inputs and steps. */
    data: string
    /** Whether it tracks what follows its deliveries. */
    isTracked?: true
  }
  /** Returns the result of `run`. `id` is that of `made`. */
  resultOf: (input: Input, id: number | string, now: string) => CommandSuccess<Record>
}

type FastPathEvent = FastPath<unknown, unknown>['event']

/** The event log's part of a fast path. */
export interface FastPathEvents {
  /** Returns false if more than the event may have to be written for an account. */
  isPossible: (account: number) => boolean
  /** An SQL condition for a row of `accounts`: only the event has to be written. */
  condition: string
  /** Returns the steps that write the event. */
  steps: (dialect: Dialect, event: FastPathEvent) => Step[]
  /** Returns what is announced. @param tracked whether an event tracks what follows its deliveries */
  changesOf: (accounts: number[], tracked: boolean) => Changes
}

/** Rows that a command changes (`update`) or only refers to (`key share`). */
export interface RowLock {
  table: Pick<Table, 'name' | 'id'>
  ids: number[]
  mode: 'update' | 'key share'
  /** `ids` are of this table, whose `column` holds the ids of the rows to lock. */
  through?: { table: Pick<Table, 'name' | 'id'>, column: string }
}

/** A coded error refuses one input and leaves the others alone; that input must have changed nothing. */
export type CommandResult<Record> = CommandSuccess<Record> | FastifyError

export interface CommandSuccess<Record> {
  record: Record
  etag?: string | undefined
  /** The events of the change for the account's feed; none when nothing changed. */
  events?: NewEvent[]
  /** What other parts of the service are told of after COMMIT, beside the events. */
  changes?: Changes
}

/** Ids of what changed, by channel. A channel without ids says only that something changed. */
export type Changes = Record<string, number[]>

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
}

/** A write that waits in the queue or is in flight. */
export interface QueuedCommand {
  command: Command<unknown, unknown>
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

/** Adds to a group's transaction when all of its commands have run. Returns changes to announce after COMMIT. */
export interface BeforeCommit {
  (tx: Transaction, completed: CompletedCommand[]): Promise<Changes>
  /** Does the same in the steps of a fast path. Without it, no command takes its fast path. */
  inFastPath?: FastPathEvents
}

/** An event before the event log gives it a number and a time. */
export interface NewEvent {
  type: string
  /** Whole records as they are after the change. */
  data: object
  /** The account of its feed, where that is not the writer's. */
  account?: number
  /** Identifies, for its subscribers, what follows the deliveries of this event. */
  tracks?: number
}

/** Identifies repetitions of a request. */
export interface IdempotencyKey {
  key: string
  /** A hash over method, path and JSON value of the request. */
  fingerprint: string
}

/** Adds changes to others, channel by channel. */
export function mergeChanges (into: Changes, from: Changes): void {
  for (const [channel, ids] of Object.entries(from)) into[channel] = [...into[channel] ?? [], ...ids]
}
