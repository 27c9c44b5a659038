import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

/** A client's own id is kept when it can stand in a header and a log line. */
const ACCEPTED = /^[A-Za-z0-9._~:-]{1,128}$/

const origin = randomBytes(9).toString('base64url')
let count = 0

/** The id of a request, the same in its answer and its log lines: the client's, or a new one. What cannot be read is none. */
export function requestId (request?: IncomingMessage): string {
  const own = request?.headers['request-id']
  return typeof own === 'string' && ACCEPTED.test(own) ? own : `${origin}-${(count++).toString(36)}`
}
