import type { DatabaseName } from '../dialect.ts'

/** What decides when the next group of writes starts. Times are in ms, by one clock. */
export interface GroupState {
  now: number
  /** Number of writes that wait. */
  queued: number
  /** When the oldest of them arrived. */
  oldestSince: number
  /** Number of writes of other groups whose clients wait for their answer, without those that run alone. */
  unanswered: number
  /** Number of writes in the last group of those that do not run alone. */
  lastSize: number
  /** When the last group was answered. */
  answeredAt: number
  /** Number of groups in flight. */
  inFlight: number
  /** Without those of commands that run alone: other writes do not wait for these, which can take long. */
  sharedInFlight: number
  /** Number of groups that the database runs at a time. */
  writers: number
  /** Ticks of the event loop in which writes have gathered. */
  ticks: number
}

/** Gather for one more tick, wait for `ms` or the end of a group, or start a group of at most `size` writes. */
export type Step = { do: 'gather' } | { do: 'wait', ms: number } | { do: 'start', size: number }

/** Maximum number of commands in one transaction: bounds its time and its memory. */
const MAX_GROUP = 256

/**
 * Ticks of the event loop in which other writes may join, if the process is busy: a mixed load on SQLite has 16 % more
 * requests/s, and orders of 4 to 32 connections on PostgreSQL have 12 to 62 % more.
 */
const MAX_TICKS = 12

/**
 * Maximum time of these ticks, in ms: each tick of a process that answers many reads takes about 2 ms. With 4 ms on
 * PostgreSQL, the p99 of a mixed load of 32 connections takes 20 % longer; with 1 ms on SQLite, one of 16 has
 * 9 % fewer requests/s.
 */
const MAX_GATHERING_MS: Record<DatabaseName, number> = { sqlite: 4, postgresql: 1 }

/**
 * Maximum time a write waits for the group in flight. After that it starts a group on another connection, if the
 * database has one: the group may wait for a lock of another process.
 */
const MAX_QUEUE_DELAY_MS = 20

/**
 * More writes than this are a crowd, which is worked on in halves, so that the server and this process work at the same
 * time: two groups take turns, and half of the answers of one are given after the other has gone on. With all writes in
 * one group, 48 to 128 connections have 10 % fewer orders/s. For fewer writes, halves cost more than they give: each
 * group has round trips and a COMMIT. SQLite has one writer, mostly in this thread.
 */
const MAX_WHOLE: Record<DatabaseName, number> = { sqlite: Infinity, postgresql: 32 }

/** Tells whether writes whose clients wait are worked on in halves. */
export function isCrowd (database: DatabaseName, writes: number): boolean {
  return writes > MAX_WHOLE[database]
}

/** Decides what to do about the writes that wait. */
export function nextStep (database: DatabaseName, state: GroupState): Step {
  const { now, queued, oldestSince, lastSize, answeredAt, inFlight, sharedInFlight, writers, ticks } = state
  if (queued === 0 || inFlight >= writers) return { do: 'wait', ms: Infinity }
  // Writes that wait for the group in flight share the next one, unless that group takes long.
  const delay = oldestSince + MAX_QUEUE_DELAY_MS - now
  if (sharedInFlight > 0 && delay > 0) return { do: 'wait', ms: delay }
  const waiting = queued + state.unanswered
  const inHalves = isCrowd(database, waiting)
  // Others are likely to arrive soon if the last group had more than one write. The clients of the group that was
  // answered last are likely to write again: without their writes, groups would become smaller and smaller.
  const isBusy = lastSize > 1 || queued > 1
  const gathered = now - Math.max(oldestSince, answeredAt)
  const mayGrow = isBusy && !inHalves && queued < MAX_GROUP
  if (mayGrow && ticks < MAX_TICKS && gathered < MAX_GATHERING_MS[database]) return { do: 'gather' }
  return { do: 'start', size: inHalves && delay > 0 ? Math.min(MAX_GROUP, Math.ceil(waiting / 2)) : MAX_GROUP }
}
