import { Readable } from 'node:stream'
import type { FastifyBaseLogger } from 'fastify'
import { findKeyById, type ApiKeyCredential } from '../accounts/commands.ts'
import type { Read } from '../database/read-batching.ts'
import { createBatchedTask } from './batched-rounds.ts'
import { resolveStartPosition } from './rules.ts'
import { streamEvents, type EventPage } from './queries.ts'

/**
 * Streams that follow their account's events. All followers of an account that are up to date share
 * one reading: a commit wakes the account, not its followers, and an idle follower costs a heartbeat.
 */
export interface EventStreams {
  /** A stream of text/event-stream after a position. `unsent` tells what its socket still holds, in bytes. */
  follow: (holder: ApiKeyCredential, after: number, unsent: () => number) => Readable
  /** There may be new events of this account. */
  wake: (account: number) => void
  /** Ends all streams; clients resume with Last-Event-ID. */
  close: () => void
}

interface Follower {
  holder: ApiKeyCredential
  stream: Readable
  unsent: () => number
  lastSent: number
  /** Told when the reader has taken what it was sent, by who waits for it. */
  taken?: (() => void) | undefined
}

/** The followers of one account that were sent everything up to `position`. */
interface SharedCursor {
  account: number
  position: number
  followers: Set<Follower>
  advancing: Promise<void> | undefined
  woken: boolean
}

/** A comment this often keeps proxies from closing an idle stream, in ms. */
const HEARTBEAT_MS = 15_000
const COMMENT = Buffer.from(':\n\n')

/** How far a reader may fall behind, in bytes: beyond it the stream ends instead of growing memory. */
const MAX_BEHIND = 1_048_576

/** A reader that has not caught up and takes nothing for this long, in ms, is given up. */
const STALLED_MS = 60_000

/** How often followers' clocks are looked at, in ms. */
const TICK_MS = 1_000

/** How often keys are looked up again: a stream ends within 5 s of its key's revocation. */
const KEY_CHECK_MS = 4_000

/** How often an account is looked at without being woken: a notification may get lost. */
const POLL_MS = 5_000

export function createEventStreams (read: Read, log: FastifyBaseLogger): EventStreams {
  const tails = new Map<number, SharedCursor>()
  const followers = new Set<Follower>()
  let ticks = 0
  let closed = false

  function follow (holder: ApiKeyCredential, after: number, unsent: () => number): Readable {
    const stream = new Readable({ read () { follower.taken?.() } })
    const follower: Follower = { holder, stream, unsent, lastSent: Date.now() }
    if (closed) {
      stream.push(null)
      return stream
    }
    followers.add(follower)
    stream.on('close', () => { leave(follower) })
    // The first bytes tell the client that the stream stands.
    stream.push(COMMENT)
    catchUp(follower, after).catch((error: unknown) => { fail(follower, error) })
    return stream
  }

  /** Reads on until the follower is where its account's tail is, and joins it. */
  async function catchUp (follower: Follower, after: number): Promise<void> {
    const { account, key } = follower.holder
    let position = after
    // The key may have been believed for a while already.
    if (await findKeyById(read, key) === undefined) return end(follower)
    while (followers.has(follower)) {
      const stretch = await readAfter(account, position)
      if (!followers.has(follower)) return
      if (stretch === undefined) return end(follower)
      send(follower, Buffer.from(stretch.text))
      position = stretch.last
      if (position < stretch.newest) {
        await untilTaken(follower)
        continue
      }
      if (!followers.has(follower)) return
      const tail = tailOf(account, position)
      if (tail.position < position) await advance(tail)
      // One whose last follower has just left is woken by nobody.
      if (tail.position !== position || tails.get(account) !== tail || !followers.has(follower)) continue
      tail.followers.add(follower)
      // Events committed after the reading above, and before the tail was there to be woken.
      return await advance(tail).catch(couldNotRead)
    }
  }

  /** @returns `undefined` when there is nothing to go on with: the account is gone, or what comes next was removed */
  async function readAfter (account: number, position: number): Promise<EventPage | undefined> {
    const stretch = await streamEvents(read, account, position)
    return stretch === undefined || resolveStartPosition(stretch, position) === 'expired' ? undefined : stretch
  }

  /** What is still to be read waits in the database, and not here. */
  async function untilTaken (follower: Follower): Promise<void> {
    const { stream } = follower
    if (stream.readableLength > stream.readableHighWaterMark) await new Promise<void>((resolve) => { follower.taken = resolve })
    follower.taken = undefined
  }

  function tailOf (account: number, position: number): SharedCursor {
    let tail = tails.get(account)
    if (tail === undefined) {
      tail = { account, position, followers: new Set(), advancing: undefined, woken: false }
      tails.set(account, tail)
    }
    return tail
  }

  async function advance (tail: SharedCursor): Promise<void> {
    tail.woken = true
    tail.advancing ??= readOn(tail)
    await tail.advancing
  }

  async function readOn (tail: SharedCursor): Promise<void> {
    try {
      while (tail.woken) {
        tail.woken = false
        const stretch = await readAfter(tail.account, tail.position)
        if (stretch === undefined) {
          for (const follower of tail.followers) end(follower)
          return
        }
        tail.position = stretch.last
        const bytes = Buffer.from(stretch.text)
        for (const follower of tail.followers) send(follower, bytes)
        if (stretch.last < stretch.newest) tail.woken = true
      }
    } finally {
      // In the same moment as the last look at `woken`: who wakes it later begins anew.
      tail.advancing = undefined
    }
  }

  /** Judges by what the reader has not taken of all before: what is new says nothing about it. */
  function send (follower: Follower, bytes: Buffer): void {
    if (bytes.length === 0) return
    const { stream, unsent } = follower
    if (stream.readableLength + unsent() > MAX_BEHIND) return cutOff(follower)
    stream.push(bytes)
    follower.lastSent = Date.now()
  }

  function end (follower: Follower): void {
    leave(follower)
    follower.stream.push(null)
  }

  /** An orderly end would wait for a reader that does not read. */
  function cutOff (follower: Follower): void {
    leave(follower)
    follower.stream.destroy()
  }

  function fail (follower: Follower, error: unknown): void {
    log.warn({ err: error }, 'a stream of events ends')
    end(follower)
  }

  function leave (follower: Follower): void {
    followers.delete(follower)
    follower.taken?.()
    const { account } = follower.holder
    const tail = tails.get(account)
    tail?.followers.delete(follower)
    if (tail?.followers.size === 0) tails.delete(account)
  }

  function couldNotRead (error: unknown): void {
    log.warn({ err: error }, 'could not read events for streams; they are looked for again')
  }

  /** What cannot be read now is left to the poll. */
  function wake (account: number): void {
    const tail = tails.get(account)
    if (tail !== undefined) advance(tail).catch(couldNotRead)
  }

  const poll = createBatchedTask(() => tails.values(), advance, couldNotRead)

  const checkKeys = createBatchedTask(() => new Set([...followers].map(({ holder }) => holder.key)), async (key) => {
    if (await findKeyById(read, key) !== undefined) return
    for (const follower of followers) if (follower.holder.key === key) end(follower)
  }, (error) => { log.warn({ err: error }, 'could not look up the keys of streams') })

  const clock = setInterval(() => {
    const now = Date.now()
    ticks++
    for (const follower of followers) {
      const { expiresAt } = follower.holder
      if (expiresAt !== undefined && now >= expiresAt) end(follower)
      else if (follower.taken !== undefined) {
        if (now - follower.lastSent >= STALLED_MS) cutOff(follower)
      } else if (now - follower.lastSent >= HEARTBEAT_MS) send(follower, COMMENT)
    }
    if (ticks % (POLL_MS / TICK_MS) === 0) poll()
    if (ticks % (KEY_CHECK_MS / TICK_MS) === 0) checkKeys()
  }, TICK_MS)
  clock.unref()

  return {
    follow,
    wake,
    close () {
      closed = true
      clearInterval(clock)
      for (const follower of followers) end(follower)
    }
  }
}
