import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

/** Ids that clients may choose: they contain nothing that a header or a log line cannot. */
const CLIENT_ID = /^[A-Za-z0-9._~:-]{1,128}$/

const processId = randomBytes(9).toString('base64url')
let count = 0

/**
 * Returns the id of a request, which its response and log lines contain: the valid id that the client sent, or a new
 * one. A request that could not be parsed is `undefined`.
 */
export function requestId (request?: IncomingMessage): string {
  const clientId = request?.headers['request-id']
  if (typeof clientId === 'string' && CLIENT_ID.test(clientId)) return clientId
  return `${processId}-${(count++).toString(36)}`
}
