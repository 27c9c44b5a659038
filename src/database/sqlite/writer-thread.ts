import { once } from 'node:events'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { DatabaseUnavailable } from '../../errors.ts'
import { PACKAGE } from '../../folders.ts'
import type { OwnStatement, Run } from '../statements.ts'

/** The compiled program. Tests run this module from `src`. */
const PROGRAM = join(PACKAGE, 'dist/writer-program.js')

/** Pause before a thread that failed is started again, in ms. */
const RESTART_DELAY_MS = 10_000

/** What the writer thread needs to open the database. */
export interface WriterOptions {
  url: string
  /** Maximum time to wait for a lock of another process, in ms. */
  lockTimeout: number
}

/** A reply to a message. Of an error it has what the service reads: a message would not keep the code of an `Error`. */
type Reply = { rows: object[][] } | { error: { message: string, code?: unknown } }

/** A message of the thread. The first says that it has opened the database, the others are replies, in their order. */
export type WriterReply = 'ready' | Reply

/**
 * Runs the statements of transactions in a thread of its own, so that a COMMIT which waits for a slow disk does not
 * stop the event loop. The thread has a connection of its own. A message and its reply take about 0.1 ms.
 */
export class WriterThread {
  readonly #options: WriterOptions
  readonly #onReady: () => void
  readonly #restartDelay: number
  #worker: Worker | undefined
  #isReady = false
  #startAt = 0
  /** Those who wait for replies, which come in the order of the messages. None comes when the thread has ended. */
  readonly #pending: Array<(reply: Reply | undefined) => void> = []

  /** @param onReady called each time the thread has opened the database */
  constructor (options: WriterOptions, onReady = (): void => {}, restartDelay = RESTART_DELAY_MS) {
    this.#options = options
    this.#onReady = onReady
    this.#restartDelay = restartDelay
  }

  /**
   * Starts the thread if necessary.
   *
   * @returns what runs statements in it, messages in the order in which they were sent; `undefined` until it is ready
   */
  runner (): Run | undefined {
    if (this.#worker === undefined && performance.now() >= this.#startAt) this.#start()
    const worker = this.#worker
    if (worker === undefined || !this.#isReady) return undefined
    return async (statements) => await this.#send(worker, statements)
  }

  /**
   * Ends the thread after its current statement. Without that, @photostructure/sqlite aborts the process: its methods
   * cannot throw in a thread that is being terminated.
   */
  readonly dispose = async (): Promise<void> => {
    this.#startAt = Infinity
    if (this.#worker === undefined) return
    this.#worker.ref()
    const ended = once(this.#worker, 'exit')
    this.#worker.postMessage('end')
    await ended
  }

  #start (): void {
    let worker
    try {
      worker = new Worker(PROGRAM, { workerData: this.#options })
    } catch {
      // The system allows no other thread now.
      return this.#end()
    }
    // It keeps the process alive only while a message waits for its reply.
    worker.unref()
    worker.on('message', (reply: WriterReply): void => {
      if (reply !== 'ready') return this.#pending.shift()?.(reply)
      this.#isReady = true
      this.#onReady()
    })
    // It ends after an error that it did not catch.
    worker.on('error', () => {})
    worker.on('exit', () => { this.#end() })
    this.#worker = worker
  }

  #end (): void {
    this.#worker = undefined
    this.#isReady = false
    this.#startAt = Math.max(this.#startAt, performance.now() + this.#restartDelay)
    for (const settle of this.#pending.splice(0)) settle(undefined)
  }

  async #send (worker: Worker, statements: readonly OwnStatement[]): Promise<object[][]> {
    if (worker !== this.#worker) throw new DatabaseUnavailable()
    worker.postMessage(statements)
    worker.ref()
    const reply = await new Promise<Reply | undefined>((resolve) => { this.#pending.push(resolve) })
    if (this.#pending.length === 0) worker.unref()
    // The thread has ended: whether its last transaction was committed is unknown.
    if (reply === undefined) throw new DatabaseUnavailable()
    if ('error' in reply) throw Object.assign(new Error(reply.error.message), { code: reply.error.code })
    return reply.rows
  }
}
