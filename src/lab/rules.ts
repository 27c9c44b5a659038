/** An open fault, as far as matching depends on it. */
export interface OpenFault {
  id: number
  operation: string
  keyId: number | null
  after: number
  times: number
  /** When it ends, by the account's clock: RFC 3339 in UTC with milliseconds. */
  endsAt: string | null
  rate: number | null
  seed: number | null
  passed: number
  /** Number of matching requests that the rate let pass. */
  spared: number
  hits: number
}

/** Tells whether a fault can still hit requests at a time of the account's clock, in the form of `endsAt`. */
export function isOpen (fault: Pick<OpenFault, 'times' | 'hits' | 'endsAt'>, now: string): boolean {
  return fault.hits < fault.times && (fault.endsAt === null || fault.endsAt > now)
}

/** A request that faults can hit. */
export interface Target {
  operation: string
  /** Whether a fault of the operation `*` matches it. */
  isOrdinary: boolean
  /** `undefined` for the call of a webhook, which has no API key. */
  keyId: number | undefined
}

export function matches (
  fault: Pick<OpenFault, 'operation' | 'keyId'>, { operation, isOrdinary, keyId }: Target
): boolean {
  if (fault.keyId !== null && fault.keyId !== keyId) return false
  return fault.operation === operation || (fault.operation === '*' && isOrdinary)
}

/**
 * Counts a request in the faults that it matches, the oldest first. A fault lets `after` requests pass and hits the
 * next `times`, or those of them that its rate selects. The first fault that hits the request ends the search: younger
 * faults do not count the request.
 *
 * @param faults the account's open faults by id, ascending; their counters are changed
 * @param now the time of the account's clock, in the form of `endsAt`
 * @returns the fault that hits the request
 */
export function judge (faults: OpenFault[], target: Target, now: string): OpenFault | undefined {
  for (const fault of faults) {
    if (!isOpen(fault, now) || !matches(fault, target)) continue
    if (fault.passed < fault.after) {
      fault.passed++
    } else if (isSelected(fault)) {
      fault.hits++
      return fault
    } else {
      fault.spared++
    }
  }
  return undefined
}

/** Returns the nth number, from 0, of the generator with this seed: mulberry32, which is the same on every machine. */
export function randomAt (seed: number, n: number): number {
  const state = (seed + Math.imul(n + 1, 0x6d2b79f5)) >>> 0
  let mixed = Math.imul(state ^ (state >>> 15), state | 1)
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
}

/** Tells whether the rate of a fault selects the next request. The number of the request decides. */
function isSelected ({ rate, seed, spared, hits }: OpenFault): boolean {
  return rate === null || randomAt(seed ?? 0, spared + hits) < rate
}

/** The largest factor between the floors of two restores: no row changes that often between them. */
const VERSIONS_PER_RESTORE = 2 ** 32

/** Returns a version above every version that any row of a store had before its nth restore. */
export function versionFloor (restores: number): number {
  return restores * VERSIONS_PER_RESTORE
}

/** How a client asks to move a clock: by a number of seconds, or to a time in ms. */
export type Advance = { seconds: number } | { to: number }

/**
 * Returns how far a clock is ahead of real time after it was moved, in seconds.
 *
 * @param now real time in ms
 * @param last the last time that a clock can show, in ms
 */
export function offsetAfter (
  now: number, offsetSeconds: number, advance: Advance, last: number
): number | 'not later' | 'out of range' {
  const furthest = Math.floor((last - now) / 1000)
  if ('to' in advance) {
    if (advance.to <= now + offsetSeconds * 1000) return 'not later'
    return Math.min(Math.ceil((advance.to - now) / 1000), furthest)
  }
  const offset = offsetSeconds + advance.seconds
  return offset > furthest ? 'out of range' : offset
}
