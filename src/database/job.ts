import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'

/**
 * A step is followed by a pause of this many times its duration, so that it takes at most a quarter of the time. While
 * the deliveries of 20 deleted webhooks ended, other accounts kept 26 % of their writes without pauses, and 72 % with
 * them (SQLite).
 */
const PAUSE_PER_STEP = 3

/** Maximum time before the first run of a job: a process may be restarted more often than once an hour. */
const MAX_FIRST_RUN_MS = 60_000

/** Does some of the work in a short transaction. @returns whether there may be more */
type Step = () => Promise<boolean>

/** Repeats a step while there may be more. */
export type RunSteps = (step: Step) => Promise<void>

interface Job {
  /** Interval of the runs in ms, of whole minutes if longer than one. A run that takes longer delays the next one. */
  every: number
  step: Step
  /** The log message of a failed step. The next run tries again. */
  failure: string
}

/** Creates a pace: of all that run by it, the further steps take turns, with a pause before each. */
export function createPace (stopped: AbortSignal): RunSteps {
  /** Time in ms, as `performance.now()`, at which the next turn begins. */
  let nextTurn = 0
  return async (step) => {
    while (!stopped.aborted) {
      const began = performance.now()
      if (!await step()) return
      const now = performance.now()
      nextTurn = Math.max(nextTurn, now) + PAUSE_PER_STEP * (now - began)
      await sleep(nextTurn - now, undefined, { ref: false, signal: stopped }).catch(() => {})
    }
  }
}

/** Runs a job at an interval, until the app closes. A run never overlaps the one before it. */
export function startJob (app: FastifyInstance, { every, step, failure }: Job): void {
  const stop = new AbortController()
  const runSteps = createPace(stop.signal)
  const tickMs = Math.min(every, MAX_FIRST_RUN_MS)
  let ticks = 0
  let running = false
  const timer = setInterval(() => {
    if (running || ticks++ % (every / tickMs) !== 0) return
    running = true
    runSteps(step)
      .catch((error: unknown) => { if (!stop.signal.aborted) app.log.warn({ err: error }, failure) })
      .finally(() => { running = false })
  }, tickMs)
  timer.unref()
  app.addHook('preClose', async () => {
    clearInterval(timer)
    stop.abort()
  })
}
