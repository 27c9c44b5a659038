import type { IncomingMessage } from 'node:http'

/** Tells whether a request announces a body (RFC 9112 section 6). */
export function announcesBody ({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'
}
