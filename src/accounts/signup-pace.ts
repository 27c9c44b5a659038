import { Overloaded } from '../errors.ts'

/**
 * How many sign-ups begin in each interval: 160 a second. Anybody may send them, so no account pays for them. Beside
 * those of 50 connections, without this limit, an account kept 0.47 of its writes, and 0.40 with two processes. Beside
 * clients that fill and delete their new accounts, it kept 0.33 with 400 a second, 0.39 with 200.
 */
const MAX_STARTS = 16
const INTERVAL_MS = 100

/** Maximum number of sign-ups that wait: for 6 s. */
const MAX_WAITING = 1_000

/** Lets the sign-ups of a crowd begin in turn. Others begin at once. */
export class SignupPace {
  #starts = 0
  readonly #waiting: Array<() => void> = []
  #interval: NodeJS.Timeout | undefined

  /**
   * @returns a promise if the sign-up has to wait
   * @throws Overloaded if too many wait
   */
  admit (): Promise<void> | undefined {
    this.#interval ??= setInterval(() => { this.#next() }, INTERVAL_MS).unref()
    if (this.#starts < MAX_STARTS) {
      this.#starts++
      return undefined
    }
    if (this.#waiting.length >= MAX_WAITING) throw new Overloaded()
    return new Promise((resolve) => { this.#waiting.push(resolve) })
  }

  #next (): void {
    const starting = this.#waiting.splice(0, MAX_STARTS)
    if (starting.length === 0 && this.#starts === 0) {
      clearInterval(this.#interval)
      this.#interval = undefined
    }
    this.#starts = starting.length
    for (const start of starting) start()
  }
}
