import type { FastifyError, FastifyInstance } from 'fastify'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import * as errors from '../errors.ts'
import { MAX_HEADER_BYTES, MAX_URL_LENGTH } from './request-head.ts'
import { SECURITY } from './security-headers.ts'
import { requestId } from '../http/request-id.ts'

/** What Node hands over that is no request, and what it would answer in its own words. */
export function clientErrors (app: FastifyInstance): void {
  // An empty 417 is Node's answer to an unknown expectation; RFC 9110 section 10.1.1 lets it be ignored.
  app.server.on('checkExpectation', (request, response) => { app.server.emit('request', request, response) })
  // Without a listener the connection would be closed in silence.
  app.server.on('connect', (request, socket) => {
    socket.on('error', () => {})
    writeRawResponse(app, socket, new errors.BadRequest('CONNECT is not taken: this service is no proxy'), request)
  })
}

interface ClientError extends Error {
  code?: string
  /** What Node was reading. */
  rawPacket?: unknown
}

/** Connections that end with the answer that is due. Every further packet of garbage is an error again, and a stream's answer lasts. */
const ending = new WeakSet<Duplex>()

/** What is no HTTP, or too slow, or too large before there is a request. */
export function onClientError (this: FastifyInstance, error: ClientError, socket: Duplex): void {
  // Node's name for the answer that is due on this connection.
  const due = (socket as Duplex & { _httpMessage?: ServerResponse | null })._httpMessage
  if (due?.req.complete === true && error.code !== 'ECONNRESET') {
    // The request of that answer was whole: what follows it must not change what its client is told.
    if (!ending.has(socket)) {
      ending.add(socket)
      due.shouldKeepAlive = false
      due.once('finish', () => { socket.end() })
    }
    return
  }
  if (error.code === 'ECONNRESET' || !socket.writable || due?.headersSent === true) {
    socket.destroy()
    return
  }
  writeRawResponse(this, socket, meaningOf(error), due?.req)
}

function meaningOf ({ code, rawPacket }: ClientError): FastifyError {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new errors.RequestTimeout()
  if (code !== 'HPE_HEADER_OVERFLOW') return new errors.BadRequest('This is not HTTP as RFC 9112 describes it')
  // The first line has no end; on a slow network it may have begun earlier, and then this is not seen.
  const endless = Buffer.isBuffer(rawPacket) && /^[A-Z]+ [^\r\n]*$/.test(rawPacket.toString('latin1'))
  return endless ? new errors.UriTooLong(MAX_URL_LENGTH) : new errors.HeadersTooLarge(MAX_HEADER_BYTES)
}

function writeRawResponse ({ log, instrumentation }: FastifyInstance, socket: Duplex, { code, message, statusCode: status = 400 }: FastifyError, request?: IncomingMessage): void {
  const id = requestId(request)
  const body = JSON.stringify({ code: code.toLowerCase(), message, status })
  const fields = [
    `HTTP/1.1 ${status} ${REASONS[status]}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
    ...Object.entries(SECURITY).map(([name, value]) => `${name}: ${value}`),
    `Request-Id: ${id}`,
    'Connection: close'
  ]
  socket.end(`${fields.join('\r\n')}\r\n\r\n${body}`)
  log.info({ requestId: id, status }, 'refused on the socket')
  instrumentation?.errorSent(code.toLowerCase())
}

const REASONS: Record<number, string> = { 400: 'Bad Request', 408: 'Request Timeout', 414: 'URI Too Long', 431: 'Request Header Fields Too Large' }
