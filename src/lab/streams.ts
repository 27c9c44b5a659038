import { pipeline, Readable, Transform, type Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Effect } from './effects.ts'

interface StreamContext {
  socket: Writable
  /** Writes the event of the hit, for effects that end the stream. */
  writeEvent: () => Promise<void>
}

/** Applies an effect to an event stream. Effects that have no meaning for a stream leave it alone. */
export async function changeStream (source: Readable, effect: Effect, context: StreamContext): Promise<Readable> {
  switch (effect.type) {
    case 'reset':
    case 'lose_answer':
      return piped(source, cutAfterEvent(context))
    case 'delay':
      return piped(source, delayEvents(effect.ms))
    case 'trickle':
      return throttle(source, effect.bytesPerSecond)
    case 'truncate':
      return piped(source, cutAfterBytes(effect.bytes, context))
    default:
      await context.writeEvent()
      return source
  }
}

/** Resolves after a time, or when the client has left. */
export async function holdBack (ms: number, socket: Writable): Promise<void> {
  const left = new AbortController()
  const leave = (): void => { left.abort() }
  socket.once('close', leave)
  await sleep(ms, undefined, { signal: left.signal }).catch(() => {})
  socket.off('close', leave)
}

/** Number of pieces a second that a slow body consists of. */
const PIECES_PER_SECOND = 10

/** Returns a stream of the same bytes at a limited speed. */
export function throttle (source: Readable, bytesPerSecond: number): Readable {
  const size = Math.max(1, Math.floor(bytesPerSecond / PIECES_PER_SECOND))
  async function * pieces (): AsyncGenerator<Buffer> {
    for await (const chunk of source as AsyncIterable<Buffer>) {
      for (let start = 0; start < chunk.length; start += size) {
        const piece = chunk.subarray(start, start + size)
        await sleep(piece.length / bytesPerSecond * 1_000)
        yield piece
      }
    }
  }
  return Readable.from(pieces())
}

function piped (source: Readable, transform: Transform): Readable {
  // Destroying either of them destroys the other.
  pipeline(source, transform, () => {})
  return transform
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

/** Bytes that may wait at once; the source waits with more. */
const MAX_HELD_BYTES = 65_536

/** Sends each event a while later. Comments, which keep the connection open, are not held back. */
function delayEvents (ms: number): Transform {
  let held = 0
  let last: Promise<void> = Promise.resolve()
  return new Transform({
    transform (chunk: Buffer, _encoding, done) {
      if (held === 0 && isComment(chunk.toString())) return done(null, chunk)
      held += chunk.length
      const waits = held > MAX_HELD_BYTES
      last = sleep(ms, undefined, { ref: false }).then(() => {
        held -= chunk.length
        if (!this.destroyed) this.push(chunk)
        if (waits) done()
      })
      if (!waits) done()
    },
    flush (done) {
      void last.then(() => { done() })
    }
  })
}
