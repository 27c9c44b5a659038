import type { FastifyError, FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { STATUS_CODES, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import * as errors from '../errors.ts'
import { connectionOf } from './connections.ts'
import { MAX_HEADER_BYTES, MAX_HEADER_FIELDS, MAX_URL_LENGTH } from './request-head.ts'
import { SECURITY_HEADERS } from './security-headers.ts'
import { deferContinue } from '../http/expect-continue.ts'
import { endAfterResponse, isFlood, lingerAfterResponse } from './unfinished-requests.ts'
import { requestId } from '../http/request-id.ts'

/** Replaces three of Node's own reactions: to `Expect: 100-continue`, to unknown expectations and to CONNECT. */
export const clientErrors = fp(async function clientErrors (app: FastifyInstance) {
  deferContinue(app.server)
  // Node answers an unknown expectation with an empty 417; RFC 9110 section 10.1.1 lets a server ignore it.
  app.server.on('checkExpectation', (request, response) => { app.server.emit('request', request, response) })
  // Without a listener, Node closes the connection without a response.
  app.server.on('connect', onConnect)

  function onConnect (request: IncomingMessage, socket: Duplex): void {
    socket.on('error', () => {})
    const message = 'CONNECT is not supported: this service is not a proxy. Send the request itself'
    writeRawResponse(app, socket, new errors.BadRequest(message), request)
  }
}, { name: 'client-errors' })

interface ClientError extends Error {
  code?: string
  /** The bytes that Node was parsing. */
  rawPacket?: unknown
}

/**
 * Connections that close after the response in flight. Every further packet that cannot be parsed is another
 * error, and the response of a stream takes long.
 */
const closing = new WeakSet<Duplex>()

/**
 * Answers bytes that are not HTTP, and requests that are too slow or too large before they are parsed. Fastify's
 * option `clientErrorHandler`.
 */
export function onClientError (this: FastifyInstance, error: ClientError, socket: Duplex): void {
  const { response: inFlight, lastRequest } = connectionOf(socket) ?? {}
  if (inFlight?.req.complete === true && error.code !== 'ECONNRESET') {
    // That request was complete: the bytes after it must not change its response.
    if (!closing.has(socket)) {
      closing.add(socket)
      if (inFlight.headersSent) {
        inFlight.once('finish', () => { endAfterResponse(socket as Socket) })
      } else {
        inFlight.setHeader('connection', 'close')
        lingerAfterResponse(socket as Socket)
      }
    }
    return
  }
  // A request with an incomplete body and no response in flight has had its response.
  const isAnswered = inFlight === undefined && lastRequest?.complete === false
  // Its connection is about to end.
  if (isAnswered && isFlood(socket as Socket)) return
  if (error.code === 'ECONNRESET' || !socket.writable || isAnswered || inFlight?.headersSent === true) {
    socket.destroy()
    return
  }
  writeRawResponse(this, socket, toApiError(error), inFlight?.req)
}

/** The request line of a valid request, whose method Node does not know. It begins the bytes that Node was parsing. */
const UNKNOWN_METHOD = /^([!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}) \S+ HTTP\/1\.[01]\r?\n/

/** A request line with too long a target. If it began in an earlier packet, it is not recognized. */
const LONG_TARGET = new RegExp(`^[A-Z]+ [^ \\r\\n]{${MAX_URL_LENGTH + 1}}`)

function toApiError (error: ClientError): FastifyError {
  if (errors.isApiError(error)) return error as FastifyError
  const { code, rawPacket } = error
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new errors.RequestTimeout()
  if (code === 'HPE_INVALID_METHOD' && Buffer.isBuffer(rawPacket)) {
    const [, method] = UNKNOWN_METHOD.exec(rawPacket.toString('latin1')) ?? []
    if (method !== undefined) {
      const hint = 'An OPTIONS request gets the methods of a path in Allow'
      return new errors.NotImplemented(`HTTP has no method "${method}". ${hint}`)
    }
  }
  if (code !== 'HPE_HEADER_OVERFLOW') {
    return new errors.BadRequest('The request is not valid HTTP. Send an HTTP/1.1 request as RFC 9112 specifies')
  }
  const isLongTarget = Buffer.isBuffer(rawPacket) && LONG_TARGET.test(rawPacket.toString('latin1'))
  if (isLongTarget) return new errors.UriTooLong(MAX_URL_LENGTH)
  return new errors.HeadersTooLarge(MAX_HEADER_FIELDS, MAX_HEADER_BYTES)
}

function writeRawResponse (
  { log, instrumentation }: FastifyInstance, socket: Duplex, error: FastifyError, request?: IncomingMessage
): void {
  const { message, statusCode: status = 400 } = error
  const code = error.code.toLowerCase()
  const id = requestId(request)
  const body = JSON.stringify({ code, message, status })
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    `Date: ${new Date().toUTCString()}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
    ...Object.entries(SECURITY_HEADERS).map(([name, value]) => `${name}: ${value}`),
    `Request-Id: ${id}`,
    'Connection: close'
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  endAfterResponse(socket as Socket)
  const { remoteAddress: address } = socket as Socket
  log.info({ requestId: id, status, code, address }, 'connection rejected')
  instrumentation?.errorSent(code)
}
