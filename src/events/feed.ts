import { Readable } from 'node:stream'
import type { FastifyBaseLogger } from 'fastify'
import { findKeyById, type KeyHolder } from '../accounts/store.ts'
import type { Read } from '../database/read.ts'
import { streamEvents } from './store.ts'

/**
 * Streams that follow their account's events. All followers of an account that are up to date share
 * one reading: a commit wakes the account, not its followers, and an idle follower costs a heartbeat.
 */
export interface Feed {
  /** A stream of text/event-stream after a position. `unsent` tells what its socket still holds, in bytes. */
  follow: (holder: KeyHolder, after: number, unsent: () => number) => Readable
  /** There may be new events of this account. */
  wake: (account: number) => void
  /** Ends all streams; clients resume with Last-Event-ID. */
  close: () => void
}

interface Follower {
  holder: KeyHolder
  stream: Readable
  unsent: () => number
  lastSent: number
}

/** The followers of one account that were sent everything up to `position`. */
interface Tail {
  account: number
  position: number
  followers: Set<Follower>
  advancing: Promise<void> | undefined
  woken: boolean
}

/** A comment this often keeps proxies from closing an idle stream, in ms. */
const HEARTBEAT_MS = 15_000

/** How far a reader may fall behind, in bytes: beyond it the stream ends instead of growing memory. */
const MAX_BEHIND = 1_048_576

/** How often followers' clocks are looked at, in ms. */
const TICK_MS = 1_000

/** How often keys are looked up again: a stream ends within 5 s of its key's revocation. */
const KEY_CHECK_MS = 4_000

/** How often an account is looked at without being woken: a notification may get lost. */
const POLL_MS = 5_000

export function createFeed (read: Read, log: FastifyBaseLogger): Feed {
  const tails = new Map<number, Tail>()
  const followers = new Set<Follower>()
  let ticks = 0

  function follow (holder: KeyHolder, after: number, unsent: () => number): Readable {
    const stream = new Readable({ read () {} })
    const follower: Follower = { holder, stream, unsent, lastSent: Date.now() }
    followers.add(follower)
    stream.on('close', () => { leave(follower) })
    // The first bytes tell the client that the stream stands.
    stream.push(':\n\n')
    catchUp(follower, after).catch((error: unknown) => { fail(follower, error) })
    return stream
  }

  /** Reads on until the follower is where its account's tail is, and joins it. */
  async function catchUp (follower: Follower, after: number): Promise<void> {
    const { account } = follower.holder
    let position = after
    while (followers.has(follower)) {
      const stretch = await streamEvents(read, account, position)
      if (stretch === undefined) return end(follower)
      send(follower, stretch.text)
      position = stretch.last
      if (position < stretch.newest) continue
      const tail = tailOf(account, position)
      if (tail.position < position) await advance(tail)
      if (tail.position !== position || !followers.has(follower)) continue
      tail.followers.add(follower)
      // Events committed after the reading above, and before the tail was there to be woken.
      return await advance(tail)
    }
  }

  function tailOf (account: number, position: number): Tail {
    let tail = tails.get(account)
    if (tail === undefined) {
      tail = { account, position, followers: new Set(), advancing: undefined, woken: false }
      tails.set(account, tail)
    }
    return tail
  }

  async function advance (tail: Tail): Promise<void> {
    tail.woken = true
    tail.advancing ??= readOn(tail).finally(() => { tail.advancing = undefined })
    await tail.advancing
  }

  async function readOn (tail: Tail): Promise<void> {
    while (tail.woken) {
      tail.woken = false
      const stretch = await streamEvents(read, tail.account, tail.position)
      if (stretch === undefined) {
        for (const follower of tail.followers) end(follower)
        return
      }
      tail.position = stretch.last
      for (const follower of tail.followers) send(follower, stretch.text)
      if (stretch.last < stretch.newest) tail.woken = true
    }
  }

  function send (follower: Follower, text: string): void {
    if (text === '') return
    follower.stream.push(text)
    follower.lastSent = Date.now()
    if (follower.stream.readableLength + follower.unsent() > MAX_BEHIND) cutOff(follower)
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
    const { account } = follower.holder
    const tail = tails.get(account)
    tail?.followers.delete(follower)
    if (tail?.followers.size === 0) tails.delete(account)
  }

  const clock = setInterval(() => {
    const now = Date.now()
    ticks++
    for (const follower of followers) {
      const { expiresAt } = follower.holder
      if (expiresAt !== undefined && now >= expiresAt) end(follower)
      else if (now - follower.lastSent >= HEARTBEAT_MS) send(follower, ':\n\n')
    }
    if (ticks % (POLL_MS / TICK_MS) === 0) for (const account of tails.keys()) wake(account)
    if (ticks % (KEY_CHECK_MS / TICK_MS) === 0) {
      checkKeys().catch((error: unknown) => { log.warn({ err: error }, 'could not look up the keys of streams') })
    }
  }, TICK_MS)
  clock.unref()

  async function checkKeys (): Promise<void> {
    const keys = [...new Set([...followers].map(({ holder }) => holder.key))]
    const gone = new Set<number>()
    await Promise.all(keys.map(async (key) => { if (await findKeyById(read, key) === undefined) gone.add(key) }))
    for (const follower of followers) if (gone.has(follower.holder.key)) end(follower)
  }

  function wake (account: number): void {
    const tail = tails.get(account)
    if (tail !== undefined) advance(tail).catch((error: unknown) => { for (const follower of tail.followers) fail(follower, error) })
  }

  return {
    follow,
    wake,
    close () {
      clearInterval(clock)
      for (const follower of followers) end(follower)
    }
  }
}
