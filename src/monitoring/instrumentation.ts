/** The two queues before the database. */
export type Queue = 'read' | 'commit'

/**
 * Receives measurements from the parts of the service. With METRICS_PORT, the metrics plugin implements it. Without,
 * `app.instrumentation` is undefined and the service measures nothing.
 */
export interface Instrumentation {
  /** Registers a queue. A scrape of the metrics calls `depth`. */
  queue: (queue: Queue, depth: () => number) => void
  /** Records the start of a batch, whose first request has waited for `ms`. */
  batchStarted: (queue: Queue, ms: number) => void
  /** Records the end of a batch of `size` requests, a statement of reads or a transaction of writes: it took `ms`. */
  batchFinished: (queue: Queue, size: number, ms: number) => void
  /** Counts an answer with an error. */
  errorSent: (code: string) => void
  /** Records the end of a delivery attempt. Its request took `ms`, if one was sent. */
  deliveryFinished: (outcome: DeliveryResult, ms: number | undefined) => void
}

/** The result of a delivery attempt: see `Completion`. */
export type DeliveryResult = 'accepted' | 'retry' | 'exhausted' | 'gone' | 'returned'

declare module 'fastify' {
  interface FastifyInstance {
    instrumentation?: Instrumentation
  }
}
