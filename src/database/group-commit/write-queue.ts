import { Overloaded } from '../../errors.ts'
import type { QueuedCommand } from './command.ts'

/** The part of the queue that one account may fill. */
const ACCOUNT_SHARE = 1 / 4

/** The number of writes that an account may have in a group even if the other accounts have fewer. */
const MIN_SHARE_OF_GROUP = 16

/** The writes that wait for a group. Accounts take turns, so that one with many writes does not delay the others. */
export interface WriteQueue {
  /** Returns the number of writes that wait. */
  size: () => number
  /** Returns the time at which the oldest write arrived, in ms, or `undefined` if none waits. */
  oldestSince: () => number | undefined
  /** @throws Overloaded when the queue, or the account's share of it, is full */
  add: (entry: QueuedCommand) => void
  /**
   * Removes the writes of the next group: those that `tryStart` accepts, the oldest first. If more wait, accounts take
   * turns: each has one write in the group before any has a second.
   *
   * While other accounts wait, an account has no more writes in a group than all of them together, or
   * `MIN_SHARE_OF_GROUP`, because each write delays the whole group. A command that runs alone takes turns with groups
   * of the others.
   */
  takeGroup: (maxSize: number, tryStart: (entry: QueuedCommand) => boolean) => QueuedCommand[]
  /** Removes the writes that arrived at a time or before. */
  takeLate: (latest: number) => QueuedCommand[]
}

export function createWriteQueue (limit: number): WriteQueue {
  const accountLimit = Math.max(1, Math.floor(limit * ACCOUNT_SHARE))
  const counts = new Map<number | string, number>()
  let entries: QueuedCommand[] = []
  let lastRanAlone = false

  function remove (taken: QueuedCommand[]): QueuedCommand[] {
    if (taken.length === entries.length) {
      entries = []
      counts.clear()
      return taken
    }
    const left = new Set(entries)
    for (const entry of taken) {
      left.delete(entry)
      const lane = laneOf(entry)
      const count = counts.get(lane)! - 1
      if (count === 0) counts.delete(lane)
      else counts.set(lane, count)
    }
    entries = [...left]
    return taken
  }

  /** Returns a function that counts the entries of a group, and tells whether the next one is within the share. */
  function shares (): (entry: QueuedCommand) => boolean {
    let ofAccounts = 0
    for (const [lane, count] of counts) if (typeof lane === 'number') ofAccounts += count
    const taken = new Map<number | string, number>()
    return (entry) => {
      const lane = laneOf(entry)
      const others = typeof lane === 'number' ? ofAccounts - counts.get(lane)! : ofAccounts
      const count = taken.get(lane) ?? 0
      if (others > 0 && count >= Math.max(MIN_SHARE_OF_GROUP, others)) return false
      taken.set(lane, count + 1)
      return true
    }
  }

  return {
    size: () => entries.length,
    oldestSince: () => entries[0]?.since,
    add (entry) {
      const lane = laneOf(entry)
      const count = counts.get(lane) ?? 0
      if (entries.length >= limit || count >= accountLimit) throw new Overloaded()
      counts.set(lane, count + 1)
      entries.push(entry)
    },
    takeGroup (maxSize, tryStart) {
      const [oldest] = entries
      if (oldest === undefined) return []
      const order = entries.length > maxSize ? inTurn(entries) : entries
      const startAlone = !lastRanAlone && runsAlone(oldest)
      for (const isAlone of [startAlone, !startAlone]) {
        const group: QueuedCommand[] = []
        const hasShare = shares()
        for (const entry of order) {
          if (group.length === (isAlone ? 1 : maxSize)) break
          if (runsAlone(entry) === isAlone && hasShare(entry) && tryStart(entry)) group.push(entry)
        }
        if (group.length === 0) continue
        lastRanAlone = isAlone
        return remove(group)
      }
      return []
    },
    takeLate: (latest) => (entries[0]?.since ?? Infinity) > latest
      ? []
      : remove(entries.filter(({ since }) => since <= latest))
  }
}

function runsAlone ({ command }: QueuedCommand): boolean {
  return command.runsAlone === true
}

/** Returns whose turn an entry takes: its account's, or that of a command which has none, such as a sign-up. */
function laneOf ({ command, context: { account } }: QueuedCommand): number | string {
  return account ?? command.name
}

/** Orders entries so that each account has its first entry before any has its second, and so on. */
function inTurn (entries: QueuedCommand[]): QueuedCommand[] {
  const turns: QueuedCommand[][] = []
  const counts = new Map<number | string, number>()
  for (const entry of entries) {
    const lane = laneOf(entry)
    const turn = counts.get(lane) ?? 0
    counts.set(lane, turn + 1)
    const others = turns[turn]
    if (others === undefined) turns.push([entry])
    else others.push(entry)
  }
  return turns.flat()
}
