/** The first pause, and the longest. Each is twice the one before. */
const FIRST_MS = 100
const MAX_MS = 10_000

/** A process that has served for so long did not fail because of its start. */
const STABLE_MS = 5_000

/**
 * Returns how many times in a row a process has failed soon after its start.
 *
 * @param servedMs for how long it served before it ended
 */
export function countFailures (before: number, servedMs: number): number {
  return servedMs >= STABLE_MS ? 1 : before + 1
}

/** Returns the pause before the next start, in ms. */
export function pauseAfter (failures: number): number {
  return Math.min(MAX_MS, FIRST_MS * 2 ** (failures - 1))
}
