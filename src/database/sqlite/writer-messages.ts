import type { OwnStatement } from '../statements.ts'

/** What the writer thread needs to open the database. */
export interface WriterOptions {
  url: string
  /** Maximum time to wait for a lock of another process, in ms. */
  lockTimeout: number
}

/** A message to the writer thread: the next step of a transaction, with its statements. */
export interface WriterRequest {
  /** Of the message; the reply repeats it. */
  id: number
  transaction: number
  /** The first message of a transaction begins it. */
  begins: boolean
  step: 'run' | 'commit' | 'rollback'
  statements: readonly OwnStatement[]
}

/** A message of the writer thread. The first says that it has opened the database, the others are replies. */
export type WriterReply = 'ready' | { id: number, result: object[][] } | { id: number, error: PlainError }

/** The parts of an error that the service reads. A message would not keep its code. */
interface PlainError {
  message: string
  code: unknown
}

export function toPlainError (error: unknown): PlainError {
  const { message, code } = error as { message: string, code?: unknown }
  return { message, code }
}

export function fromPlainError ({ message, code }: PlainError): Error {
  return Object.assign(new Error(message), { code })
}
