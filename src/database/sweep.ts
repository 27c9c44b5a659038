import type { FastifyInstance } from 'fastify'

export interface SweepOptions {
  intervalMs: number
  /** The log message of a failed sweep. */
  failure: string
}

/** Runs a deletion of expired rows at an interval, until the app closes. A sweep never overlaps the one before it. */
export function startSweep (app: FastifyInstance, sweep: () => Promise<void>, options: SweepOptions): void {
  let running = false
  const timer = setInterval(() => {
    if (running) return
    running = true
    sweep()
      .catch((error: unknown) => { app.log.warn({ err: error }, options.failure) })
      .finally(() => { running = false })
  }, options.intervalMs)
  timer.unref()
  app.addHook('preClose', async () => { clearInterval(timer) })
}
