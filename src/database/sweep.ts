import type { FastifyInstance } from 'fastify'

export interface SweepOptions {
  intervalMs: number
  /** The log message of a failed sweep. */
  failure: string
}

/**
 * Runs a deletion of rows at an interval, until the app closes. A sweep never overlaps the one before it.
 *
 * @param sweep its signal aborts when the app closes
 */
export function startSweep (
  app: FastifyInstance, sweep: (stopped: AbortSignal) => Promise<void>, options: SweepOptions
): void {
  const stop = new AbortController()
  let running = false
  const timer = setInterval(() => {
    if (running) return
    running = true
    sweep(stop.signal)
      .catch((error: unknown) => { if (!stop.signal.aborted) app.log.warn({ err: error }, options.failure) })
      .finally(() => { running = false })
  }, options.intervalMs)
  timer.unref()
  app.addHook('preClose', async () => {
    clearInterval(timer)
    stop.abort()
  })
}
