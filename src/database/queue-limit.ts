import { Overloaded } from '../errors.ts'

/** The part of a queue that one account may fill. */
const ACCOUNT_SHARE = 1 / 4

/** Counts what waits in a queue, in all and by account, and refuses what would exceed its limits. */
export class QueueLimit<Account> {
  readonly #limit: number
  readonly #counts = new Map<Account, number>()
  #all = 0

  /** @param limit requests that may wait, of all accounts */
  constructor (limit: number) {
    this.#limit = limit
  }

  /** The number of requests that wait, by account. */
  get counts (): ReadonlyMap<Account, number> {
    return this.#counts
  }

  /**
   * Counts a further request. One of an account with nothing waiting may always wait.
   *
   * @throws Overloaded if it may not wait
   */
  enter (account: Account): void {
    const ofAccount = this.#counts.get(account) ?? 0
    const share = Math.max(1, Math.floor(this.#limit * ACCOUNT_SHARE))
    if (ofAccount > 0 && (this.#all >= this.#limit || ofAccount >= share)) throw new Overloaded()
    this.#counts.set(account, ofAccount + 1)
    this.#all++
  }

  /** Counts one request less. */
  leave (account: Account): void {
    const left = this.#counts.get(account)! - 1
    if (left === 0) this.#counts.delete(account)
    else this.#counts.set(account, left)
    this.#all--
  }
}
