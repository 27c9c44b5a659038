/** The last instant that both databases and RFC 3339 can express. */
export const LAST_INSTANT = Date.parse('9999-12-31T23:59:59.999Z')

/** Returns a time in ms as RFC 3339 in UTC. What would come after the last instant happens at the last instant. */
export function timeText (ms: number): string {
  return new Date(Math.min(ms, LAST_INSTANT)).toISOString()
}

/**
 * The clocks of accounts. An account's clock shows real time, unless it was moved ahead. Everything that an account
 * sees of time follows its clock.
 */
export class AccountClocks {
  /** How far clocks are ahead, in ms. Accounts in real time have no entry. */
  readonly #offsets = new Map<number, number>()

  /** Called whenever this process learns that a clock was moved. */
  onAdvance = (): void => {}

  /** Returns the accounts whose clocks were moved. */
  movedAccounts (): number[] {
    return [...this.#offsets.keys()]
  }

  /** Returns how far the clock of an account is ahead, in ms. What belongs to no account is in real time. */
  offsetOf (account: number | null): number {
    return this.#offsets.size === 0 || account === null ? 0 : this.#offsets.get(account) ?? 0
  }

  /** Returns the time of an account, in ms since 1970. */
  now (account: number | null): number {
    return Math.min(Date.now() + this.offsetOf(account), LAST_INSTANT)
  }

  /** Moves the clock of an account in this process. Clocks never go back, whatever order the news arrives in. */
  advance (account: number, offsetMs: number): void {
    if (offsetMs <= this.offsetOf(account)) return
    this.#offsets.set(account, offsetMs)
    this.onAdvance()
  }

  /** Forgets the clock of an account that was deleted. */
  forget (account: number): void {
    this.#offsets.delete(account)
  }
}
