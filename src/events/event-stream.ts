import type { FastifyBaseLogger } from 'fastify'
import { findKeyById, type ApiKeyCredential } from '../accounts/queries.ts'
import { AccountClocks } from '../database/account-clocks.ts'
import type { Read } from '../database/reads/query.ts'
import { createBatchedTask } from './batched-rounds.ts'
import {
  COMMENT, checkFollower, createFollower, end, sendMessages, unsubscribe, waitForDrain,
  type EventStream, type Follower, type FollowerTimings, type MessageFilter, type UnsentBytes
} from './followers.ts'
import { streamEvents, type EventPage } from './queries.ts'
import { resolveStartPosition } from './rules.ts'

/**
 * Streams that follow the events of their account. All followers of an account that are up to date share one cursor:
 * a commit wakes the cursor and not each follower, and an idle follower costs a comment now and then.
 */
export interface EventStreams {
  /** Returns the number of streams that an account has open in this process. */
  countOf: (account: number) => number
  /** Opens a stream of text/event-stream after a position, of the messages that a filter accepts. */
  follow: (
    credential: ApiKeyCredential, after: number, unsentBytes: UnsentBytes, accepts?: MessageFilter
  ) => EventStream
  /** Tells the streams of an account that there may be new events. */
  wake: (account: number) => void
  /** Ends all streams. Clients resume with Last-Event-ID. */
  close: () => void
}

export interface StreamTimings extends FollowerTimings {
  /** Interval at which followers are checked; the other times are multiples of it. */
  tickMs: number
  /** Interval at which the keys of streams are looked up: a stream ends within 5 s of its key's revocation. */
  keyCheckMs: number
  /** Interval at which accounts are polled without being woken: a notification may get lost. */
  pollMs: number
}

export const STREAM_TIMINGS: Readonly<StreamTimings> = {
  tickMs: 1_000,
  heartbeatMs: 15_000,
  stalledMs: 60_000,
  keyCheckMs: 4_000,
  pollMs: 5_000
}

/** The position up to which its followers have been sent all events of the account. */
interface SharedCursor {
  account: number
  position: number
  followers: Set<Follower>
  /** The poll loop in flight. */
  polling: Promise<void> | undefined
  /** There may be events that the poll loop has not read. */
  dirty: boolean
}

/** Reads what a stream has after a position, in the form of events. */
export type StreamSource = (read: Read, account: number, after: number) => Promise<EventPage | undefined>

interface Streams {
  source: StreamSource
  read: Read
  clocks: AccountClocks
  log: FastifyBaseLogger
  state: 'open' | 'closed'
  /** By account. */
  cursors: Map<number, SharedCursor>
  followers: Set<Follower>
  /** The number of streams that are not closed, by account. */
  counts: Map<number, number>
}

export function createEventStreams (
  read: Read, log: FastifyBaseLogger, timings: Partial<StreamTimings> = {}, clocks = new AccountClocks(),
  source: StreamSource = streamEvents
): EventStreams {
  const streams: Streams = {
    source, read, clocks, log, state: 'open', cursors: new Map(), followers: new Set(), counts: new Map()
  }
  const clock = startClock(streams, { ...STREAM_TIMINGS, ...timings })
  return {
    countOf: (account) => streams.counts.get(account) ?? 0,
    follow: (credential, after, unsentBytes, accepts) => follow(streams, credential, after, unsentBytes, accepts),
    wake (account) {
      const cursor = streams.cursors.get(account)
      // A read that fails is left to the next poll.
      if (cursor !== undefined) poll(streams, cursor).catch((error: unknown) => { logFailedRead(streams, error) })
    },
    close () {
      streams.state = 'closed'
      clearInterval(clock)
      for (const follower of streams.followers) end(follower)
    }
  }
}

function startClock (streams: Streams, timings: StreamTimings): NodeJS.Timeout {
  const { tickMs, keyCheckMs, pollMs } = timings
  const { followers, cursors, clocks } = streams
  const pollAll = createBatchedTask({
    items: () => cursors.values(),
    work: async (cursor) => { await poll(streams, cursor) },
    onError: (error) => { logFailedRead(streams, error) }
  })
  const checkKeys = createBatchedTask({
    items: () => new Set([...followers].map(({ credential }) => credential.key)),
    work: async (key) => { await checkKey(streams, key) },
    onError: (error) => { streams.log.warn({ err: error }, 'cannot look up the API keys of event streams') }
  })
  let ticks = 0
  const clock = setInterval(() => {
    const now = performance.now()
    ticks++
    for (const follower of followers) {
      checkFollower(follower, now, clocks.now(follower.credential.account), timings)
    }
    if (ticks % Math.round(pollMs / tickMs) === 0) pollAll()
    if (ticks % Math.round(keyCheckMs / tickMs) === 0) checkKeys()
  }, tickMs)
  return clock.unref()
}

/** Ends the streams of a key that was revoked. */
async function checkKey ({ read, followers }: Streams, key: number): Promise<void> {
  if (await findKeyById(read, key) !== undefined) return
  for (const follower of followers) if (follower.credential.key === key) end(follower)
}

function follow (
  streams: Streams, credential: ApiKeyCredential, after: number, unsentBytes: UnsentBytes, accepts?: MessageFilter
): EventStream {
  const follower = createFollower(credential, unsentBytes, (follower) => { remove(streams, follower) }, accepts)
  const { stream } = follower
  if (streams.state === 'closed') {
    stream.push(null)
    return stream
  }
  streams.followers.add(follower)
  streams.counts.set(credential.account, (streams.counts.get(credential.account) ?? 0) + 1)
  // A stream that has ended may still have a backlog, which its client does not read.
  stream.on('close', () => {
    unsubscribe(follower)
    countDown(streams, credential.account)
  })
  // The first bytes tell the client that the stream is open.
  stream.push(COMMENT)
  catchUp(streams, follower, after).catch((error: unknown) => {
    streams.log.warn({ err: error }, 'ending an event stream after an error')
    end(follower)
  })
  return stream
}

function countDown ({ counts }: Streams, account: number): void {
  const count = counts.get(account)! - 1
  if (count === 0) counts.delete(account)
  else counts.set(account, count)
}

/** Removes a follower, and its account's cursor after the last follower. */
function remove ({ followers, cursors }: Streams, follower: Follower): void {
  // A follower that ends is removed, and once more when its stream closes.
  if (!followers.delete(follower)) return
  const { account } = follower.credential
  const cursor = cursors.get(account)
  cursor?.followers.delete(follower)
  if (cursor?.followers.size === 0) cursors.delete(account)
}

/** Reads events for the follower until it reaches the position of its account's cursor, and joins the cursor. */
async function catchUp (streams: Streams, follower: Follower, after: number): Promise<void> {
  const { account, key } = follower.credential
  let position = after
  // Authentication may have cached the key before its revocation.
  if (await findKeyById(streams.read, key) === undefined) return end(follower)
  while (isActive(follower)) {
    const page = await readAfter(streams, account, position)
    if (!isActive(follower)) return
    if (page === undefined) return end(follower)
    sendMessages(follower, page, Buffer.from(page.text))
    if (!isActive(follower)) return
    position = page.last
    if (position < page.newest) await waitForDrain(follower)
    else if (await join(streams, follower, position)) return
  }
}

/** `send` and every await may end a follower. */
function isActive ({ state }: Follower): boolean {
  return state !== 'ended'
}

/** @returns whether the follower joined its account's cursor; `false` when it has to read on from its position */
async function join (streams: Streams, follower: Follower, position: number): Promise<boolean> {
  const { account } = follower.credential
  const cursor = cursorOf(streams, account, position)
  if (cursor.position < position) await poll(streams, cursor)
  // A cursor whose last follower has left in the meantime is no longer woken.
  const isCurrent = cursor.position === position && streams.cursors.get(account) === cursor
  if (!isCurrent || !isActive(follower)) return false
  cursor.followers.add(follower)
  follower.state = 'following'
  // Reads events that were committed after the follower's last read, and before the cursor could be woken.
  await poll(streams, cursor).catch((error: unknown) => { logFailedRead(streams, error) })
  return true
}

/** @returns `undefined` when the stream must end: the account was deleted, or the next events were */
async function readAfter (
  { read, source }: Streams, account: number, position: number
): Promise<EventPage | undefined> {
  const page = await source(read, account, position)
  return page === undefined || resolveStartPosition(page, position) === 'expired' ? undefined : page
}

function cursorOf ({ cursors }: Streams, account: number, position: number): SharedCursor {
  let cursor = cursors.get(account)
  if (cursor === undefined) {
    cursor = { account, position, followers: new Set(), polling: undefined, dirty: false }
    cursors.set(account, cursor)
  }
  return cursor
}

/** Reads new events and sends them to the cursor's followers. Callers share the loop that is in flight. */
async function poll (streams: Streams, cursor: SharedCursor): Promise<void> {
  cursor.dirty = true
  cursor.polling ??= pollLoop(streams, cursor)
  await cursor.polling
}

async function pollLoop (streams: Streams, cursor: SharedCursor): Promise<void> {
  try {
    while (cursor.dirty) {
      cursor.dirty = false
      const page = await readAfter(streams, cursor.account, cursor.position)
      if (page === undefined) {
        for (const follower of cursor.followers) end(follower)
        return
      }
      cursor.position = page.last
      const bytes = Buffer.from(page.text)
      for (const follower of cursor.followers) sendMessages(follower, page, bytes)
      if (page.last < page.newest) cursor.dirty = true
    }
  } finally {
    // Synchronous with the last check of `dirty`: a later call of `poll` starts a new loop.
    cursor.polling = undefined
  }
}

function logFailedRead ({ log }: Streams, error: unknown): void {
  log.warn({ err: error }, 'cannot read events for streams; the next poll reads them')
}
