/** A step that ends deliveries is followed by a pause of this many times its duration, for all webhooks together. */
const PAUSE_PER_STEP = 3

/** Spreads the steps that end deliveries in this process, so that they take a small part of the time. */
export interface EndingPace {
  /**
   * Reserves the next turn after those that are reserved already.
   *
   * @param durationMs how long the last step took
   * @returns the time in ms to wait for the turn
   */
  reserve: (durationMs: number) => number
}

export function createEndingPace (): EndingPace {
  /** Time in ms, as `performance.now()`, at which the next turn begins. */
  let nextTurn = 0
  return {
    reserve (durationMs) {
      const now = performance.now()
      nextTurn = Math.max(nextTurn, now) + PAUSE_PER_STEP * durationMs
      return nextTurn - now
    }
  }
}
