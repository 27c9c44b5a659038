import type { FastifyError } from '@fastify/error'
import type { Table } from '../sql/bulk-insert.ts'
import type { Transaction } from './transaction.ts'

/**
 * A write. `run` gets the inputs of every request of this command in the group, in order of arrival,
 * and says what becomes of each: it must leave the rows as if they had come one after another.
 */
export interface Command<Input, Record> {
  name: string
  /** The rows it decides about: locked before it runs, in an order that never crosses another group's. */
  rows?: (input: Input) => Rows
  /** The table in which each input makes a row, at most: its ids are taken before it runs. */
  creates?: Table
  run: (tx: Transaction, inputs: Input[]) => Promise<Array<CommandResult<Record>>>
}

/** A coded error refuses one input and leaves its neighbours alone; it must have changed nothing. */
export type CommandResult<Record> = CommandSuccess<Record> | FastifyError

export interface CommandSuccess<Record> {
  record: Record
  etag?: string | undefined
  /** What the account's feed shall say of it; none when nothing changed. */
  events?: NewEvent[]
  /** There is something to deliver without an event of its own: whoever delivers looks. */
  wakes?: boolean
  /** Webhooks that changed or went: what is held of their deliveries is given back, and taken anew as they are now. */
  changedWebhooks?: number[]
}

/** What others may want to know of a transaction, once it is committed. */
export interface News {
  /** The accounts that have new events. */
  accounts: number[]
  /** There is something to deliver, or to settle. */
  due: boolean
  /** The webhooks that changed or went. */
  webhooks: number[]
}

/** In whose name a write is made. */
export interface WriteContext {
  /** `null` only for what has no account yet. */
  account: number | null
  idempotency?: IdempotencyKey | undefined
}

export interface WriteResult<Record> {
  record: Record
  etag?: string | undefined
  /** The answer of an earlier request with the same Idempotency-Key. */
  replayed: boolean
}

/** A write that waits for its turn, or is under way. */
export interface QueuedCommand {
  command: Command<unknown, unknown>
  input: unknown
  context: WriteContext
  since: number
  resolve: (committed: WriteResult<unknown>) => void
  reject: (error: unknown) => void
}

/** Rows by id. A category is `used` when it must only stay, `categories` when it may go or change. */
export interface Rows {
  categories?: number[]
  usedCategories?: number[]
  pets?: number[]
  /** The pets of these orders count as well. */
  orders?: number[]
  webhooks?: number[]
}

/** An event before the committer gives it its number and its time. */
export interface NewEvent {
  type: string
  /** Whole records as they are after the change. */
  data: object
  /** Whose feed it belongs to, where that is not the writer's. */
  account?: number
  /** Position of the message whose status follows the deliveries of this event. */
  message?: number
}

/** What a repetition of the request is known by. */
export interface IdempotencyKey {
  key: string
  /** Stands for method, path and JSON value of the request. */
  fingerprint: string
}
