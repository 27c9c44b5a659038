/** The two queues before the database. */
export type Queue = 'read' | 'commit'

/**
 * Told of what happens, by whoever does it. There is one only where METRICS_PORT asks for it; everywhere
 * else `app.instrumentation` is undefined and nothing is measured.
 */
export interface Instrumentation {
  /** A queue whose depth is asked for when somebody looks. */
  queue: (queue: Queue, depth: () => number) => void
  /** A batch begins; its first request waited `ms` for it. */
  batchStarted: (queue: Queue, ms: number) => void
  /** A batch of `size` requests is done after `ms`: a statement of reads, a transaction of writes. */
  batchFinished: (queue: Queue, size: number, ms: number) => void
  /** An error was answered. */
  errorSent: (code: string) => void
  /** A call to a webhook ended, after `ms` if it came to one. */
  deliveryFinished: (outcome: DeliveryResult, ms: number | undefined) => void
}

/** The result of a delivery: see `Completion`. */
export type DeliveryResult = 'accepted' | 'retry' | 'exhausted' | 'gone' | 'returned'

declare module 'fastify' {
  interface FastifyInstance {
    instrumentation?: Instrumentation
  }
}
