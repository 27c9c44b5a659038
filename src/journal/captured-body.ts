import { createHash, type Hash } from 'node:crypto'

/** Number of bytes of a body that the journal has. */
const MAX_BODY_BYTES = 16_384

/** The beginning of a body that passes by. */
export class CapturedBody {
  readonly #parts: Array<string | Buffer> = []
  /** The size of the whole body. */
  bytes = 0
  /** The size of what was captured. */
  capturedBytes = 0
  readonly #hashesRest: boolean
  #rest: Hash | undefined

  constructor ({ hashesRest = false } = {}) {
    this.#hashesRest = hashesRest
  }

  add (chunk: string | Uint8Array): void {
    const length = typeof chunk === 'string' ? Buffer.byteLength(chunk) : chunk.length
    const room = MAX_BODY_BYTES - this.capturedBytes
    this.bytes += length
    if (length > room && this.#hashesRest) {
      this.#rest ??= createHash('sha256')
      this.#rest.update(Buffer.from(chunk as Uint8Array).subarray(room))
    }
    if (length === 0 || room === 0) return
    const part = beginningOf(chunk, length, room)
    this.capturedBytes += Math.min(length, room)
    this.#parts.push(part)
  }

  get isTruncated (): boolean {
    return this.bytes > this.capturedBytes
  }

  /** Returns a hash of what was not captured, to compare bodies; `undefined` if everything was. */
  hashOfRest (): string | undefined {
    return this.#rest?.copy().digest('base64')
  }

  /** Returns the text; bytes that are not UTF-8 become U+FFFD. `undefined` without a body. */
  text (): string | undefined {
    const [first] = this.#parts
    if (first === undefined) return undefined
    if (this.#parts.length === 1 && typeof first === 'string') return first
    const bytes = Buffer.concat(this.#parts.map((part) => typeof part === 'string' ? Buffer.from(part) : part))
    if (!this.isTruncated) return bytes.toString('utf8')
    // As a stream, so that a character that was cut off is left out.
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes, { stream: true })
  }
}

/** Returns at most `room` bytes of a part. Bytes are copied: they can be a view of what a connection was read into. */
function beginningOf (chunk: string | Uint8Array, length: number, room: number): string | Buffer {
  if (typeof chunk !== 'string') return Buffer.from(chunk.subarray(0, room))
  // No character of a text has less than a byte.
  return length <= room ? chunk : Buffer.from(chunk.slice(0, room)).subarray(0, room)
}
