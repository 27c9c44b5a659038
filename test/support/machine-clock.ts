import type { Test } from 'tap'

const STEP_MS = 7_200_000

let aheadMs = 0

const { now } = Date
// Before the code that is tested keeps the function.
Date.now = () => now() + aheadMs

/** Sets the clock of this process back by two hours until the test ends. */
export function setClockBack (t: Pick<Test, 'teardown'>): void {
  setClock(t, -STEP_MS)
}

/** Sets the clock of this process ahead by two hours until the test ends. */
export function setClockAhead (t: Pick<Test, 'teardown'>): void {
  setClock(t, STEP_MS)
}

function setClock (t: Pick<Test, 'teardown'>, ms: number): void {
  aheadMs = ms
  t.teardown(() => { aheadMs = 0 })
}
