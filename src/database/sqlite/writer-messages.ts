/** What the writer thread needs to open the database. */
export interface WriterOptions {
  url: string
  /** Maximum time to wait for a lock of another process, in ms. */
  lockTimeout: number
}

/**
 * A message of the writer thread. The first says that it has opened the database. Each of the others is the reply to a
 * message, in their order. Of an error it has what the service reads: a message would not keep the code of an `Error`.
 */
export type WriterReply = 'ready' | { rows: object[][] } | { error: { message: string, code?: unknown } }
