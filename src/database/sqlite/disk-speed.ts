/** A COMMIT that waits longer for the disk is slow, in ms. */
const SLOW_MS = 1

/** So many slow COMMITs, less the fast ones between them, make the disk slow. */
const SLOW_COMMITS = 8

/** Interval of the COMMITs that measure a slow disk again, in ms. */
const PROBE_INTERVAL_MS = 10_000

/** Judges the disk by how long COMMITs in this thread wait for it. */
export class DiskSpeed {
  /** Number of slow COMMITs, less the fast ones, between 0 and `SLOW_COMMITS`. */
  #slowCommits = 0
  #probedAt = 0
  readonly #now: () => number

  /** @param now the time in ms, by a clock that is never set */
  constructor (now = () => performance.now()) {
    this.#now = now
  }

  /** Records a COMMIT. `waited` is its time without that of the processor, in ms. */
  record (waited: number): void {
    if (waited <= SLOW_MS) this.#slowCommits = Math.max(0, this.#slowCommits - 1)
    else if (this.#slowCommits < SLOW_COMMITS && ++this.#slowCommits === SLOW_COMMITS) this.#probedAt = this.#now()
  }

  /**
   * Returns whether a COMMIT should not wait in this thread. At an interval, it returns false for one, whose record
   * tells whether the disk is still slow.
   */
  isSlow (): boolean {
    if (this.#slowCommits < SLOW_COMMITS) return false
    if (this.#now() - this.#probedAt < PROBE_INTERVAL_MS) return true
    this.#probedAt = this.#now()
    return false
  }
}
