import type { ServerResponse } from 'node:http'
import { pipeline, Readable, Transform, type Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type { EventStream } from '../events/followers.ts'
import type { Effect } from './effects.ts'
import { RESERVED_BYTES } from './held-bytes.ts'

interface StreamContext {
  socket: Writable
  /** Writes the event of the hit, once. */
  writeEvent: () => Promise<void>
  /** Reserves room for what the effect holds back. */
  reserve: (bytes: number) => (() => void) | undefined
}

/**
 * Applies an effect to an event stream.
 *
 * @returns `undefined` when the effect has no meaning for a stream, or no room
 */
export function changeStream (source: EventStream, effect: Effect, context: StreamContext): Readable | undefined {
  switch (effect.type) {
    case 'reset':
    case 'lose_answer':
      return piped(source, cutAfterEvent(context), context)
    case 'truncate':
      return piped(source, cutAfterBytes(effect.bytes, context), context)
    case 'delay':
      return slowed(source, context, () => delayEvents(source, effect.ms))
    case 'trickle':
      return slowed(source, context, () => throttle(source, effect.bytesPerSecond, source))
    default:
      return undefined
  }
}

/** Resolves after a time, or when the client has left. */
export async function holdBack (ms: number, response: ServerResponse): Promise<void> {
  // It emits `close` once. Its socket is destroyed before: then the journal would have a response that nobody got.
  if (response.destroyed) return
  const left = new AbortController()
  const leave = (): void => { left.abort() }
  response.once('close', leave)
  await sleep(ms, undefined, { signal: left.signal }).catch(() => {})
  response.off('close', leave)
}

/** Number of pieces a second that a slow body consists of. */
const PIECES_PER_SECOND = 10

/**
 * Returns a stream of the same bytes at a limited speed.
 *
 * @param ending emits `ending` when the rest is not to be sent
 */
export function throttle (source: Readable, bytesPerSecond: number, ending?: EventStream): Readable {
  const size = Math.max(1, Math.floor(bytesPerSecond / PIECES_PER_SECOND))
  const stopped = new AbortController()
  ending?.once('ending', () => { stopped.abort() })
  async function * pieces (): AsyncGenerator<Buffer> {
    for await (const chunk of source as AsyncIterable<Buffer>) {
      for (let start = 0; start < chunk.length; start += size) {
        const piece = chunk.subarray(start, start + size)
        await sleep(piece.length / bytesPerSecond * 1_000, undefined, { signal: stopped.signal }).catch(() => {})
        if (stopped.signal.aborted) return
        yield piece
      }
    }
  }
  return Readable.from(pieces())
}

function piped (source: EventStream, transform: Transform, { writeEvent }: StreamContext): Readable {
  // Destroying either of them destroys the other. A client that leaves before the cut was hit all the same.
  pipeline(source, transform, () => { void writeEvent() })
  return transform
}

/** Makes a slow stream, within the room that is reserved for it. */
function slowed (source: EventStream, { reserve }: StreamContext, slow: () => Readable): Readable | undefined {
  const release = reserve(RESERVED_BYTES)
  if (release === undefined) return undefined
  // A chunk can come on top, of another quarter. Once as much is here, once in the follower.
  source.maxBacklogBytes = RESERVED_BYTES / 4
  return slow().once('close', release)
}

/** The end of a block of text/event-stream. */
const BLOCK_END = '\n\n'

/** Passes everything up to the end of the next event, and then closes the connection. */
function cutAfterEvent (context: StreamContext): Transform {
  let hasCut = false
  return new Transform({
    transform (chunk: Buffer, _encoding, done) {
      const end = hasCut ? 0 : endOfFirstEvent(chunk.toString())
      if (end === undefined) return done(null, chunk)
      if (hasCut) return done()
      hasCut = true
      this.push(Buffer.from(chunk.toString().slice(0, end)))
      cut(context)
      done()
    }
  })
}

/** Returns the position after the first event in blocks of which others are comments. */
function endOfFirstEvent (text: string): number | undefined {
  let start = 0
  for (let end; (end = text.indexOf(BLOCK_END, start)) >= 0; start = end + BLOCK_END.length) {
    if (!isComment(text.slice(start, end))) return end + BLOCK_END.length
  }
  return undefined
}

/** Tells whether each line of a text is a comment: an event can follow a comment without an empty line. */
function isComment (text: string): boolean {
  return text.split('\n').every((line) => line === '' || line.startsWith(':'))
}

function cutAfterBytes (bytes: number, context: StreamContext): Transform {
  let left = bytes
  return new Transform({
    transform (chunk: Buffer, _encoding, done) {
      const part = chunk.subarray(0, left)
      left -= part.length
      if (part.length > 0) this.push(part)
      if (part.length < chunk.length) cut(context)
      done()
    }
  })
}

/** Closes the connection once the bytes before are sent and the hit is recorded. */
function cut ({ socket, writeEvent }: StreamContext): void {
  void writeEvent().finally(() => { closeAfterWrites(socket) })
}

/** Closes a connection once the bytes before are sent. The socket of `inject` has no `destroySoon`. */
export function closeAfterWrites (socket: Writable): void {
  socket.end(() => { socket.destroy() })
}

/** Bytes that may wait here at once; the source waits with more. */
const MAX_HELD_BYTES = 65_536

/**
 * Returns a stream that sends each event a while later. Comments, which keep the connection open, are not held back
 * unless events wait. When the source ends, so does the stream: its client resumes after the last event that it got.
 */
function delayEvents (source: EventStream, ms: number): Readable {
  const queue: Array<{ chunk: Buffer, due: number }> = []
  let held = 0
  let timer: NodeJS.Timeout | undefined

  const delayed = new Readable({
    read: takeMore,
    destroy (error, done) {
      drop()
      source.destroy()
      done(error)
    }
  })
  source.on('data', hold).once('close', () => { delayed.destroy() }).once('ending', () => {
    drop()
    delayed.push(null)
  })
  return delayed

  function drop (): void {
    source.off('data', hold)
    clearTimeout(timer)
    queue.length = 0
  }

  function hold (chunk: Buffer): void {
    if (held === 0 && isComment(chunk.toString())) {
      delayed.push(chunk)
    } else {
      held += chunk.length
      queue.push({ chunk, due: performance.now() + ms })
      timer ??= setTimeout(sendDue, ms)
    }
    takeMore()
  }

  function sendDue (): void {
    timer = undefined
    while (queue.length > 0 && queue[0]!.due <= performance.now()) {
      const { chunk } = queue.shift()!
      held -= chunk.length
      delayed.push(chunk)
    }
    if (queue.length > 0) timer = setTimeout(sendDue, queue[0]!.due - performance.now())
    takeMore()
  }

  function takeMore (): void {
    if (held + delayed.readableLength > MAX_HELD_BYTES) source.pause()
    else source.resume()
  }
}
