import { once } from 'node:events'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { DatabaseUnavailable } from '../../errors.ts'
import { PACKAGE } from '../../folders.ts'
import type { OwnStatement } from '../statements.ts'
import type { ReservedConnection } from '../transact.ts'
import { fromPlainError, type WriterOptions, type WriterReply, type WriterRequest } from './writer-messages.ts'

/** The compiled program. Tests run this module from `src`. */
const PROGRAM = join(PACKAGE, 'dist/writer-program.js')

/** Pause before a thread that failed is started again, in ms. */
const RESTART_DELAY_MS = 10_000

export interface ThreadOptions {
  /** Called each time the thread has opened the database. */
  onReady?: () => void
  /** `RESTART_DELAY_MS` by default. */
  restartDelay?: number
}

interface PendingRequest {
  resolve: (rows: object[][]) => void
  reject: (error: Error) => void
}

/**
 * Runs transactions in a thread of its own, so that a COMMIT which waits for a slow disk does not stop the event loop.
 * The thread has a connection of its own. A message and its reply take about 0.1 ms.
 */
export class WriterThread {
  readonly #options: WriterOptions
  readonly #onReady: () => void
  readonly #restartDelay: number
  #worker: Worker | undefined
  #isReady = false
  #startAt = 0
  #requests = 0
  #transactions = 0
  readonly #pending = new Map<number, PendingRequest>()

  constructor (
    options: WriterOptions, { onReady = () => {}, restartDelay = RESTART_DELAY_MS }: ThreadOptions = {}
  ) {
    this.#options = options
    this.#onReady = onReady
    this.#restartDelay = restartDelay
  }

  /** Starts the thread if necessary. @returns whether it can run transactions now */
  start (): boolean {
    if (this.#worker === undefined && performance.now() >= this.#startAt) this.#start()
    return this.#isReady
  }

  readonly begin = async (): Promise<ReservedConnection> => {
    const transaction = ++this.#transactions
    let begins = true
    const send = async (step: WriterRequest['step'], statements: readonly OwnStatement[]): Promise<object[][]> => {
      const request = { id: ++this.#requests, transaction, begins, step, statements }
      begins = false
      return await this.#send(request)
    }
    return {
      run: async (statements) => await send('run', statements),
      commit: async (statements) => await send('commit', statements),
      rollback: async (isUsable) => {
        const rolledBack = send('rollback', [])
        // A thread that waits for the disk gets to it later.
        if (isUsable) await rolledBack
        else rolledBack.catch(() => {})
      }
    }
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
    const worker = new Worker(PROGRAM, { workerData: this.#options })
    // It keeps the process alive only while a request waits.
    worker.unref()
    worker.on('message', (reply: WriterReply) => { this.#settle(reply) })
    // It ends after an error that it did not catch.
    worker.on('error', () => {})
    worker.on('exit', () => { this.#end() })
    this.#worker = worker
  }

  #settle (reply: WriterReply): void {
    if (reply === 'ready') {
      this.#isReady = true
      return this.#onReady()
    }
    const pending = this.#pending.get(reply.id)
    this.#pending.delete(reply.id)
    if (this.#pending.size === 0) this.#worker?.unref()
    if ('error' in reply) pending?.reject(fromPlainError(reply.error))
    else pending?.resolve(reply.result)
  }

  /** The thread has ended: whether its last transaction was committed is unknown. */
  #end (): void {
    this.#worker = undefined
    this.#isReady = false
    this.#startAt = Math.max(this.#startAt, performance.now() + this.#restartDelay)
    for (const { reject } of this.#pending.values()) reject(new DatabaseUnavailable())
    this.#pending.clear()
  }

  async #send (request: WriterRequest): Promise<object[][]> {
    return await new Promise((resolve, reject) => {
      if (this.#worker === undefined) return reject(new DatabaseUnavailable())
      if (this.#pending.size === 0) this.#worker.ref()
      this.#pending.set(request.id, { resolve, reject })
      this.#worker.postMessage(request)
    })
  }
}
