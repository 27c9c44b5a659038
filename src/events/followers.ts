import { Readable } from 'node:stream'
import { hasExpiredAccount, type ApiKeyCredential } from '../accounts/queries.ts'
import type { EventPage } from './queries.ts'

/** The text/event-stream of a follower. It emits `ending` when it gets nothing more, before all of it was read. */
export class EventStream extends Readable {
  /** Limits the backlog: beyond it the stream is destroyed, or it would grow the memory. */
  maxBacklogBytes = 1_048_576
}

/** A client that follows the events of its account. */
export interface Follower {
  credential: ApiKeyCredential
  stream: EventStream
  /** Returns the number of bytes that the client's socket has not sent yet. */
  unsentBytes: UnsentBytes
  /** When the stream was last sent something, as a time of `performance.now()`. */
  lastSentAt: number
  /**
   * `catching up`: reads events for itself, from its own position. `draining`: waits, while it catches up, until the
   * client reads. `following`: shares its account's cursor. `ended`: receives nothing more.
   */
  state: 'catching up' | 'draining' | 'following' | 'ended'
  /** Resumes a follower that drains. */
  drained: (() => void) | undefined
  /** Removes the follower from the lists of the event streams. */
  onUnsubscribe: (follower: Follower) => void
  /** Selects the messages that the follower gets. Without it, the follower gets all. */
  accepts: MessageFilter | undefined
}

/** Tells from the facts about a message whether a follower gets it. */
export type MessageFilter = (facts: object) => boolean

export type UnsentBytes = () => number

/** A comment of the event stream format. An empty line after it would end an event, and some clients report one. */
export const COMMENT = Buffer.from(':\n')

export function createFollower (
  credential: ApiKeyCredential, unsentBytes: UnsentBytes, onUnsubscribe: Follower['onUnsubscribe'],
  accepts?: MessageFilter
): Follower {
  const follower: Follower = {
    credential,
    stream: new EventStream({ read () { follower.drained?.() } }),
    unsentBytes,
    lastSentAt: performance.now(),
    state: 'catching up',
    drained: undefined,
    onUnsubscribe,
    accepts
  }
  return follower
}

/** Sends the messages of a page that the follower gets. @param bytes all of them */
export function sendMessages (follower: Follower, { messages = [] }: EventPage, bytes: Buffer): void {
  const { accepts } = follower
  if (accepts === undefined) return send(follower, bytes)
  const accepted = messages.filter(({ facts }) => accepts(facts))
  send(follower, Buffer.from(accepted.map(({ text }) => text).join('')))
}

/** Sends bytes, or disconnects a follower whose backlog is too large. */
export function send (follower: Follower, bytes: Buffer): void {
  if (bytes.length === 0) return
  const { stream, unsentBytes } = follower
  // The backlog is checked before the bytes are added: a large chunk must not disconnect a client that keeps up.
  if (stream.readableLength + unsentBytes() > stream.maxBacklogBytes) return disconnect(follower)
  stream.push(bytes)
  follower.lastSentAt = performance.now()
}

/** Waits until the client has read the backlog, so that the events to come wait in the database and not in memory. */
export async function waitForDrain (follower: Follower): Promise<void> {
  const { stream } = follower
  if (stream.readableLength <= stream.readableHighWaterMark) return
  follower.state = 'draining'
  await new Promise<void>((resolve) => { follower.drained = resolve })
  follower.drained = undefined
  // It may have ended in the meantime.
  if (follower.state === 'draining') follower.state = 'catching up'
}

/** Ends the stream after the bytes that it was sent. */
export function end (follower: Follower): void {
  unsubscribe(follower)
  follower.stream.push(null)
  follower.stream.emit('ending')
}

/** Destroys the stream: an orderly end would wait for a client that does not read. */
function disconnect (follower: Follower): void {
  unsubscribe(follower)
  follower.stream.destroy()
}

export function unsubscribe (follower: Follower): void {
  follower.state = 'ended'
  follower.drained?.()
  follower.onUnsubscribe(follower)
}

export interface FollowerTimings {
  /** Time after which an idle stream is sent a comment, so that proxies do not close it. */
  heartbeatMs: number
  /** Time after which a follower that drains and reads nothing is disconnected. */
  stalledMs: number
}

/**
 * Ends an expired follower, disconnects a stalled one and sends an idle one a comment.
 *
 * @param now a time of `performance.now()`
 * @param accountTime the time of the follower's account in ms, by which its key expires
 */
export function checkFollower (
  follower: Follower, now: number, accountTime: number, { heartbeatMs, stalledMs }: FollowerTimings
): void {
  const { credential, lastSentAt, state } = follower
  const { expiresAt } = credential
  if (hasExpiredAccount(credential) || (expiresAt !== undefined && accountTime >= expiresAt)) {
    end(follower)
  } else if (state === 'draining') {
    if (now - lastSentAt >= stalledMs) disconnect(follower)
  } else if (now - lastSentAt >= heartbeatMs) {
    send(follower, COMMENT)
  }
}
