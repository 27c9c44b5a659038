import type { IncomingMessage } from 'node:http'
import type { Exchange, HeaderField } from './schemas.ts'

/** Limit how much of a response body is read, so that the connection can be reused. */
const MAX_BODY_BYTES = 16_384
const BODY_TIMEOUT_MS = 1_000

/** Limits how much of a body is kept for the owner of the webhook, and how many characters of its header fields. */
const MAX_KEPT = 4_096

type Answer = NonNullable<Exchange['answer']>

/**
 * Reads a short body to its end, so that the connection can be reused, and aborts any other.
 *
 * @param done called with what is kept of the response
 */
export function readResponse (response: IncomingMessage, done: (answer: Answer) => void): void {
  const kept: Buffer[] = []
  let bytes = 0
  const timer = setTimeout(() => { response.destroy() }, BODY_TIMEOUT_MS)
  response.on('data', (chunk: Buffer) => {
    // A copy: the chunk is a part of a buffer of 64 KB.
    if (bytes < MAX_KEPT) kept.push(Buffer.from(chunk.subarray(0, MAX_KEPT - bytes)))
    bytes += chunk.length
    if (bytes > MAX_BODY_BYTES) response.destroy()
  })
  response.on('error', () => {})
  response.on('close', () => {
    clearTimeout(timer)
    const { fields, truncated } = keptFields(response)
    // A character that the limit cuts is left out.
    const body = new TextDecoder('utf-8', { ignoreBOM: true }).decode(Buffer.concat(kept), { stream: true })
    done({ fields, body, truncated: truncated || bytes > MAX_KEPT || !response.complete })
  })
}

/** Returns the fields of a head in their order, until they have `MAX_KEPT` characters. */
export function keptFields ({ rawHeaders }: IncomingMessage): Pick<Answer, 'fields' | 'truncated'> {
  const fields: HeaderField[] = []
  let left = MAX_KEPT
  for (let i = 0; i < rawHeaders.length && left > 0; i += 2) {
    const name = rawHeaders[i]!.slice(0, left)
    const value = rawHeaders[i + 1]!.slice(0, left - name.length)
    fields.push({ name, value })
    left -= name.length + value.length
  }
  const all = rawHeaders.reduce((length, text) => length + text.length, 0)
  return { fields, truncated: all > MAX_KEPT }
}
