import { DriverAdapterError } from '@prisma/driver-adapter-utils'
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

/** The parts of an error that the service reads. A message would keep neither its code nor its class. */
interface PlainError {
  message: string
  code: unknown
  /** The error in the terms of Prisma's adapters, if it is SQLite's. */
  cause: DriverAdapterError['cause'] | undefined
}

export function toPlainError (error: unknown): PlainError {
  const { message, code } = error as { message: string, code?: unknown }
  return { message, code, cause: error instanceof DriverAdapterError ? error.cause : undefined }
}

export function fromPlainError ({ message, code, cause }: PlainError): Error {
  return Object.assign(cause === undefined ? new Error() : new DriverAdapterError(cause), { message, code })
}
