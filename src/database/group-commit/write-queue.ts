import { QueueLimit } from '../queue-limit.ts'
import { RoundRobinQueue } from '../round-robin-queue.ts'
import type { Command, QueuedCommand } from './command.ts'

/** The number of writes that an account may have in a group even if the other accounts have fewer. */
const MIN_SHARE_OF_GROUP = 16

/**
 * While others write, a command that runs alone waits as long as the last one took, within these limits: each of its
 * transactions makes them wait, and for another COMMIT. Where it waited for three groups of the others, 1,300 such
 * commands/s of one client left another account 0.37 of its writes, and 0.49 now. A command that itself waits long,
 * such as for a lock, holds up no other.
 */
const ALONE_PAUSE_MS = { least: 5, most: 100 }

/** Entries of one lane take one turn: an account, or a command without an account. */
type Lane = number | string

/** The writes that wait for a group. Accounts take turns, so that one with many writes does not delay the others. */
export class WriteQueue {
  readonly #limit: QueueLimit<Lane>
  #entries: QueuedCommand[] = []
  readonly #now: () => number
  /** When a command that runs alone may start beside other accounts. */
  #aloneAt = 0
  /** The lanes of the last group of commands that ran alone. */
  #lastAlone = new Set<Lane>()
  /** Whether writes of other lanes have started since then. */
  #haveOthersStarted = true
  /** How long commands that run alone still had to wait, in ms, when `takeGroup` looked. Without any, `Infinity`. */
  aloneDelay = Infinity

  /** @param now the time in ms, by a clock that is never set */
  constructor (limit: number, now = () => performance.now()) {
    this.#limit = new QueueLimit(limit)
    this.#now = now
  }

  /** Returns the number of writes that wait. */
  get size (): number {
    return this.#entries.length
  }

  /** Returns the time at which the oldest write arrived, in ms, or `undefined` if none waits. */
  get oldestSince (): number | undefined {
    return this.#entries[0]?.since
  }

  /** @throws Overloaded if other writes of the account wait, and the queue, or the account's share of it, is full */
  add (entry: QueuedCommand): void {
    this.#limit.enter(laneOf(entry))
    this.#entries.push(entry)
  }

  /**
   * Removes the writes of the next group: those that `tryStart` accepts, the oldest first. If more wait, accounts take
   * turns: each has one write in the group before any has a second.
   *
   * While other accounts wait, an account has no more writes in a group than all of them together, or
   * `MIN_SHARE_OF_GROUP`, because each write delays the whole group. Commands that run alone take turns with
   * the others, and wait for `aloneDelay`.
   */
  takeGroup (maxSize: number, tryStart: (entry: QueuedCommand) => boolean): QueuedCommand[] {
    const [oldest] = this.#entries
    if (oldest === undefined) return []
    const order = this.#entries.length > maxSize ? inTurn(this.#entries) : this.#entries
    const startAlone = this.#haveOthersStarted && runsAlone(oldest) !== undefined
    const delay = this.#haveOthersStarted ? this.#aloneAt - this.#now() : 0
    this.aloneDelay = delay > 0 && this.#entries.some((entry) => runsAlone(entry) !== undefined) ? delay : Infinity
    for (const isAlone of [startAlone, !startAlone]) {
      if (isAlone && delay > 0) continue
      const group: QueuedCommand[] = []
      const tryCount = countShares(this.#limit.counts)
      for (const entry of order) {
        if (group.length === maxSize) break
        if ((runsAlone(entry) !== undefined) !== isAlone || (isAlone && !mayJoin(entry, group))) continue
        if (tryCount(entry) && tryStart(entry)) group.push(entry)
      }
      if (group.length === 0) continue
      if (isAlone) {
        this.#lastAlone = new Set(group.map(laneOf))
        this.#haveOthersStarted = false
        this.#aloneAt = this.#now() + ALONE_PAUSE_MS.least
      } else {
        this.#haveOthersStarted ||= group.some((entry) => !this.#lastAlone.has(laneOf(entry)))
      }
      this.#remove(group)
      return group
    }
    return []
  }

  /** Must be called at the end of a group of commands that run alone. @param ms its duration */
  endAlone (ms: number): void {
    const { least, most } = ALONE_PAUSE_MS
    this.#aloneAt = this.#now() + Math.min(most, Math.max(least, ms))
  }

  /** Removes the writes that arrived at a time or before: all of them, or those that `isAffected` names. */
  takeLate (latest: number, isAffected: (entry: QueuedCommand) => boolean = () => true): QueuedCommand[] {
    if ((this.oldestSince ?? Infinity) > latest) return []
    const late = this.#entries.filter((entry) => entry.since <= latest && isAffected(entry))
    this.#remove(late)
    return late
  }

  #remove (taken: QueuedCommand[]): void {
    const left = new Set(this.#entries)
    for (const entry of taken) {
      left.delete(entry)
      this.#limit.leave(laneOf(entry))
    }
    this.#entries = [...left]
  }
}

/**
 * Returns a function that counts an entry for a group, or returns false if the share of its account is used up.
 *
 * @param waiting the number of entries that wait, by lane
 */
function countShares (waiting: ReadonlyMap<Lane, number>): (entry: QueuedCommand) => boolean {
  let ofAccounts = 0
  for (const [lane, count] of waiting) if (typeof lane === 'number') ofAccounts += count
  const taken = new Map<Lane, number>()
  return (entry) => {
    const lane = laneOf(entry)
    const others = ofAccounts - (typeof lane === 'number' ? waiting.get(lane)! : 0)
    const count = taken.get(lane) ?? 0
    if (others > 0 && count >= Math.max(MIN_SHARE_OF_GROUP, others)) return false
    taken.set(lane, count + 1)
    return true
  }
}

function runsAlone ({ command }: QueuedCommand): Command<unknown, unknown>['runsAlone'] {
  return 'decide' in command ? undefined : command.runsAlone
}

/** Tells whether a command that runs alone may be in a group of such commands. */
function mayJoin (entry: QueuedCommand, [first]: QueuedCommand[]): boolean {
  return first === undefined || (entry.command === first.command && runsAlone(entry) === 'with its kind')
}

/** Returns the lane of an entry: its account, or the name of a command without one, such as a sign-up. */
function laneOf ({ command, context: { account } }: QueuedCommand): Lane {
  return account ?? command.name
}

/** Orders entries so that each account has its first entry before any has its second, and so on. */
function inTurn (entries: QueuedCommand[]): QueuedCommand[] {
  const queue = new RoundRobinQueue<Lane, QueuedCommand>()
  for (const entry of entries) queue.add(laneOf(entry), entry)
  return entries.map(() => queue.takeIf(() => true)!)
}
