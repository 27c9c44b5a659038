import type { Test } from 'tap'

const BACK_MS = 7_200_000

/** Sets the clock of this process back by two hours until the test ends. */
export function setClockBack (t: Test): void {
  const { now } = Date
  t.teardown(() => { Date.now = now })
  Date.now = () => now() - BACK_MS
}
