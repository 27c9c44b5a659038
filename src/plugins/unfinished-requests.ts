import { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { BadRequest } from '../errors.ts'
import { announcesBody } from '../http/announces-body.ts'

// A client may send its body for as long as it likes, whatever the response. These are the limits of such bodies.

/**
 * Limits of chunked bodies. Each chunk costs a call from the parser into JavaScript, whatever its size: a MB in chunks
 * of one byte takes ten to twenty times as long as in large ones.
 */
const MAX_SMALL_CHUNKS = 1_024
const SMALL_CHUNK_BYTES = 64

/** Memory of a chunk besides its bytes: on Node 20, a buffer of one byte takes 200 to 300. */
const CHUNK_OVERHEAD_BYTES = 256

/** Limits of what the service reads after a response: enough for a client that sends its request before it reads. */
const MAX_DISCARDED_BYTES = 65_536
/** Time for the last response of a connection to arrive. */
export const LINGER_MS = 1_000

/**
 * The same after too many small chunks. The parser has continued to the end of what was read at once, 14 ms for 64 KB:
 * 40 clients that are disconnected after a second send that again at once, and left another account 0.17 of its writes.
 */
const FLOOD_LINGER_MS = 10_000

/** The connections that have sent too many small chunks. */
const floods = new WeakSet<Socket>()

export function isFlood (socket: Socket): boolean {
  return floods.has(socket)
}

/** Counts the memory of all bodies that are not complete. */
export interface BodyMeter {
  add: (bytes: number) => void
}

/** A request that counts its body. */
export class CountedRequest extends IncomingMessage {
  #bytes = 0
  #chunks = 0
  #isRefused = false
  #isAbandoned = false
  /** Set before the body arrives. */
  meter: BodyMeter | undefined = undefined
  /** Called once, if the body has too many small chunks. Without it, any number is accepted. */
  onTooManyChunks: ((error: Error) => void) | undefined = undefined

  /** Takes a part of the body from the parser: a chunk, or as much as arrived at once. */
  override push (part: Buffer | null): boolean {
    if (part === null) {
      this.release()
      return super.push(part)
    }
    // The parser continues to the end of what was read at once.
    if (this.#isRefused) return true
    this.#bytes += part.length
    this.#chunks++
    this.meter?.add(part.length + CHUNK_OVERHEAD_BYTES)
    if (this.#isRefused) return true
    const areMany = this.#chunks > MAX_SMALL_CHUNKS && this.#bytes < this.#chunks * SMALL_CHUNK_BYTES
    if (!areMany || this.onTooManyChunks === undefined) return super.push(part)
    this.#isRefused = true
    floods.add(this.socket)
    this.onTooManyChunks(new BadRequest(
      `The body has more than ${MAX_SMALL_CHUNKS} chunks, which have less than ${SMALL_CHUNK_BYTES} bytes on average. ` +
        'Send larger chunks'
    ))
    return true
  }

  /** Memory of a body that is not complete. */
  get unfinishedBytes (): number {
    return this.complete || this.#isAbandoned ? 0 : this.#memory
  }

  get #memory (): number {
    return this.#bytes + this.#chunks * CHUNK_OVERHEAD_BYTES
  }

  /**
   * Forgets the body, and reads no more of the connection, which ends with the time-out of the request. Closed at once,
   * it would be open again at once, and the service would receive its bytes again and again.
   */
  abandon (): void {
    this.release()
    this.#isRefused = this.#isAbandoned = true
    // What collects the body holds the parts that it has.
    for (const event of ['data', 'end', 'error'] as const) this.removeAllListeners(event)
    this.resume()
    this.socket.pause()
  }

  override _read (size: number): void {
    if (!this.#isAbandoned) super._read(size)
  }

  /** Counts the body no longer. Node does not destroy a request that was answered before it was complete. */
  release (): void {
    this.meter?.add(-this.#memory)
    this.meter = undefined
  }
}

/** A response that ends the connection if its request is not complete. */
export class ClosingResponse extends ServerResponse<CountedRequest> {
  // The parameters of `writeHead` have several forms.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  override writeHead (...parameters: any): this {
    if (isUnfinished(this.req)) {
      this.setHeader('connection', 'close')
      lingerAfterResponse(this.req.socket)
    }
    return super.writeHead(...parameters as [number])
  }
}

/** Tells whether a part of the body is missing. The parser calls handlers before it completes any request. */
export function isUnfinished (request: IncomingMessage): boolean {
  return !request.complete && announcesBody(request)
}

/** Lets Node end a connection by `endAfterResponse`, once the last response is sent. */
export function lingerAfterResponse (socket: Socket): void {
  socket.destroySoon = () => { endAfterResponse(socket) }
}

/**
 * Ends a connection whose client may still be sending. If the service closed it at once, the system would discard the
 * response with the bytes that nobody read (RFC 9112 section 9.6). The parser gets none of these bytes.
 */
export function endAfterResponse (socket: Socket): void {
  let left = MAX_DISCARDED_BYTES
  socket.removeAllListeners('data')
  socket.on('data', ({ length }) => {
    left -= length
    if (left <= 0) socket.pause()
  })
  socket.resume()
  socket.end(() => {
    const timer = setTimeout(() => { socket.destroy() }, isFlood(socket) ? FLOOD_LINGER_MS : LINGER_MS)
    socket.once('close', () => { clearTimeout(timer) })
  })
}
