import type { Server, ServerResponse } from 'node:http'

/** Responses whose clients wait for `100 Continue` before they send the body. */
const waiting = new WeakSet<ServerResponse>()

/**
 * Keeps a server from sending `100 Continue` by itself: an answer that needs no body comes in its place (RFC 9110
 * section 10.1.1), and the lab can close a connection without a byte.
 */
export function deferContinue (server: Server): void {
  server.on('checkContinue', (request, response) => {
    waiting.add(response)
    server.emit('request', request, response)
  })
}

/** Asks the client for the body, if it waits for that. */
export function sendContinue (response: ServerResponse): void {
  if (waiting.delete(response)) response.writeContinue()
}
