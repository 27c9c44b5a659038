/** Number of bytes of a body that the journal has. */
const MAX_BODY_BYTES = 16_384

/** The beginning of a body that passes by. */
export class CapturedBody {
  readonly #parts: Buffer[] = []
  #captured = 0
  /** The size of the whole body. */
  bytes = 0

  add (chunk: string | Uint8Array): void {
    const length = typeof chunk === 'string' ? Buffer.byteLength(chunk) : chunk.length
    const room = MAX_BODY_BYTES - this.#captured
    this.bytes += length
    if (length === 0 || room === 0) return
    // A copy: a part of a request is a view of the buffer that a connection was read into, which can be larger. No
    // character of a text has less than a byte.
    const part = typeof chunk === 'string'
      ? Buffer.from(chunk.slice(0, room)).subarray(0, room)
      : Buffer.from(chunk.subarray(0, room))
    this.#captured += part.length
    this.#parts.push(part)
  }

  get isTruncated (): boolean {
    return this.bytes > this.#captured
  }

  /** Returns the text; bytes that are not UTF-8 become U+FFFD. `undefined` without a body. */
  text (): string | undefined {
    if (this.#captured === 0) return undefined
    if (!this.isTruncated) return Buffer.concat(this.#parts).toString('utf8')
    // As a stream, so that a character that was cut off is left out.
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(Buffer.concat(this.#parts), { stream: true })
  }
}
