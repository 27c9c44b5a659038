/** The two queues of requests that wait for the database. */
export type Queue = 'read' | 'commit'

/**
 * Records measurements. `app.instrumentation` is undefined unless METRICS_PORT is set, so that without metrics the
 * service measures nothing.
 */
export interface Instrumentation {
  /** Registers a queue. Its depth is read whenever Prometheus collects the metrics. */
  queue: (queue: Queue, depth: () => number) => void
  /** Records the start of a batch, whose first request waited for `ms`. */
  batchStarted: (queue: Queue, ms: number) => void
  /** Records the end of a batch of `size` requests after `ms`: one statement of reads, or one transaction of writes. */
  batchFinished: (queue: Queue, size: number, ms: number) => void
  /** Records an error response. */
  errorSent: (code: string) => void
  /** Records the result of a delivery; `ms` is the duration of its request, if one was sent. */
  deliveryFinished: (outcome: DeliveryResult, ms: number | undefined) => void
}

/** The result of a delivery: see `Settlement`. */
export type DeliveryResult = 'accepted' | 'again' | 'givenUp' | 'gone' | 'released'

declare module 'fastify' {
  interface FastifyInstance {
    instrumentation?: Instrumentation
  }
}
