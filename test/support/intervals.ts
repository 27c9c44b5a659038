import type { Test } from 'tap'

/** Repeated timers of the service, which tests cannot wait for. */
export interface Intervals {
  /** Runs each timer with this interval once, as if the time had passed. */
  elapse: (ms: number) => void
}

/** Records the timers that are started from now on. They also run by themselves. */
export function recordIntervals (t: Pick<Test, 'teardown'>): Intervals {
  const { setInterval: start, clearInterval: stop } = globalThis
  const running = new Map<unknown, { ms: number | undefined, run: () => void }>()
  const patched = (callback: () => void, ms?: number): NodeJS.Timeout => {
    const timer = start(callback, ms)
    running.set(timer, { ms, run: callback })
    return timer
  }
  globalThis.setInterval = patched as typeof setInterval
  globalThis.clearInterval = (timer) => {
    running.delete(timer)
    stop(timer)
  }
  t.teardown(() => { Object.assign(globalThis, { setInterval: start, clearInterval: stop }) })
  return { elapse: (ms) => { for (const timer of [...running.values()]) if (timer.ms === ms) timer.run() } }
}
