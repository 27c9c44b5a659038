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
  #wasLong = false
  readonly #now: () => number
  readonly #processorTime: () => number

  /**
   * @param now the time in ms, by a clock that is never set
   * @param processorTime that of this process, in ms
   */
  constructor (now = () => performance.now(), processorTime = timeOfProcess) {
    this.#now = now
    this.#processorTime = processorTime
  }

  /** Runs a COMMIT, and records how long it waited. */
  measure (commit: () => void): void {
    const began = this.#now()
    // A large group takes milliseconds of the processor. After a short COMMIT it is not worth the time to ask.
    const before = this.#wasLong ? this.#processorTime() : undefined
    commit()
    const ms = this.#now() - began
    this.#wasLong = ms > SLOW_MS
    this.record(before === undefined ? ms : ms - (this.#processorTime() - before))
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

function timeOfProcess (): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}
