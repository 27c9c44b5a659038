import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import FindMyWay from 'find-my-way'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { randomUUID } from 'node:crypto'
import { challenge } from './auth.ts'
import { ACCEPT_PATCH } from './bodies.ts'
import * as errors from './errors.ts'
import { SECURITY } from './headers.ts'

/** The closed list of codes, as clients see them. */
const CODES: ReadonlySet<string> = new Set(Object.values(errors).map((CodedError) => codeOf(new CodedError())))

/** Seconds after which a client may try again. */
const RETRY_AFTER_S = 1

export function codeOf ({ code }: { code: string }): string {
  return code.toLowerCase()
}

/** Answers every error in the Error shape: a 4xx says what is wrong, a 5xx says nothing and logs all. */
export function answerErrors (app: FastifyInstance): void {
  app.setErrorHandler<FastifyError>(async (thrown, request, reply) => {
    const error = await limited(coded(thrown, app), request, reply)
    const status = error.statusCode ?? 500
    app.meter?.failed(codeOf(error))
    if (status >= 500) request.log.error({ err: thrown }, error.message)
    if (status === 401) challenge(request, reply)
    if (status === 403 && error instanceof errors.ReadOnlyKey) challenge(request, reply, 'insufficient_scope')
    if (status === 503 || error instanceof errors.IdempotencyKeyInUse) reply.header('retry-after', RETRY_AFTER_S)
    reply.removeHeader('etag')
    return reply.code(status).headers({ 'cache-control': 'no-store' }).send({ code: codeOf(error), message: error.message, status })
  })
  app.setNotFoundHandler(async () => { throw new errors.RouteNotFound() })
}

/** Who tries one bad credential after the other is told to wait; a good key never comes here. */
async function limited (error: FastifyError, request: FastifyRequest, reply: FastifyReply): Promise<FastifyError> {
  if (error.statusCode !== 401 || request.headers.authorization === undefined) return error
  try {
    await request.server.limits.failedAuth(request, reply)
    return error
  } catch (limit) {
    return limit as FastifyError
  }
}

/** Ours as it is; Fastify's own by what it means; anything else is a defect and says nothing. */
function coded (error: FastifyError, app: FastifyInstance): FastifyError {
  if (CODES.has(codeOf({ code: String(error.code) }))) return error
  switch (error.code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE': return new errors.PayloadTooLarge(app.initialConfig.bodyLimit)
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE': return new errors.InvalidContentType('application/json')
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH': return new errors.BadRequest('The body is not as long as Content-Length says')
    case 'FST_ERR_BAD_URL': return new errors.BadRequest('The address holds a broken percent-escape')
    case 'FST_BEARER_AUTH_MISSING_AUTHORIZATION_HEADER': return new errors.Unauthorized('Send your API key as "Authorization: Bearer <API_KEY>"')
    case 'FST_BEARER_AUTH_INVALID_AUTHORIZATION_HEADER': return new errors.Unauthorized('The Authorization header must have the form "Bearer <API_KEY>"')
  }
  const status = error.statusCode ?? 500
  return status >= 400 && status < 500 ? new errors.BadRequest('The request cannot be read') : new errors.InternalError()
}

/** Addresses longer than this are refused, in characters. */
const URL_LIMIT = 8_192

/**
 * What happens to requests that no route takes: 404, 405 with `Allow`, or 204 to OPTIONS. Decided before
 * anything is read of the request. Knows every route registered after it was called.
 */
export function answerMissed (app: FastifyInstance): void {
  const paths = FindMyWay({ maxParamLength: URL_LIMIT })
  const methods = new Map<string, Set<string>>()

  app.addHook('onRoute', ({ url, method }) => {
    if (url.includes('*')) return
    let known = methods.get(url)
    if (known === undefined) {
      known = new Set()
      methods.set(url, known)
      paths.on('GET', url, () => {}, known)
    }
    for (const name of [method].flat()) known.add(name)
  })

  // Node would answer an unknown expectation with an empty 417; RFC 9110 section 10.1.1 lets it be ignored.
  app.server.on('checkExpectation', (request, response) => { app.server.emit('request', request, response) })

  app.addHook('onRequest', async (request, reply) => {
    if (request.url.length > URL_LIMIT) throw new errors.UriTooLong(URL_LIMIT)
    const { headers, httpVersion } = request.raw
    if (headers.host === undefined && httpVersion === '1.1') throw new errors.BadRequest('An HTTP/1.1 request must have a Host header')
    if (!request.is404 && request.method !== 'OPTIONS') {
      if (isEmptyId(request.params)) throw new errors.RouteNotFound()
      return
    }
    const [path = ''] = request.url.split('?')
    const found = paths.find('GET', path)
    if (found === null || isEmptyId(found.params)) throw new errors.RouteNotFound()
    const known = found.store as Set<string>
    reply.header('allow', [...known, 'OPTIONS'].join(', '))
    if (request.method !== 'OPTIONS') throw new errors.MethodNotAllowed(request.method)
    if (known.has('PATCH')) reply.header('accept-patch', ACCEPT_PATCH)
    return reply.code(204).send()
  })
}

/** The router takes `/pets/` for a pet with an empty id; to us it is another address, with nothing there. */
function isEmptyId (params: unknown): boolean {
  const named = params as Record<string, string>
  for (const name in named) {
    if (named[name] === '' && name !== '*') return true
  }
  return false
}

/** The path and query of a request; a proxy may send the whole address (RFC 9112 section 3.2.2). */
export function originForm ({ url = '' }: IncomingMessage): string {
  return url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/?#]*\/?/i, '/')
}

/** A router's own failures (a broken percent-escape) come before any hook. */
export function answerFrameworkError (error: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  const answer = coded(error, request.server)
  request.server.meter?.failed(codeOf(answer))
  reply.code(answer.statusCode ?? 400)
    .headers({ ...SECURITY, 'cache-control': 'no-store', 'request-id': request.id })
    .send({ code: codeOf(answer), message: answer.message, status: answer.statusCode })
}

/** What is no HTTP, or too slow, or too large before there is a request: answered on the bare socket. */
export function answerClientError (this: FastifyInstance, error: Error & { code?: string }, socket: Socket): void {
  // Node's name for the answer that is due on this connection.
  const due = (socket as Socket & { _httpMessage?: ServerResponse | null })._httpMessage
  if (due?.req.complete === true && error.code !== 'ECONNRESET') {
    // The request of that answer was whole: what follows it must not change what its client is told.
    due.shouldKeepAlive = false
    due.once('finish', () => { socket.end() })
    return
  }
  if (error.code === 'ECONNRESET' || !socket.writable || due?.headersSent === true) {
    socket.destroy()
    return
  }
  const refusal = ofSocket(error.code)
  const { message, statusCode = 400 } = refusal
  const body = JSON.stringify({ code: codeOf(refusal), message, status: statusCode })
  this.meter?.failed(codeOf(refusal))
  const fields = [
    `HTTP/1.1 ${statusCode} ${REASONS[statusCode]}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
    ...Object.entries(SECURITY).map(([name, value]) => `${name}: ${value}`),
    `Request-Id: ${randomUUID()}`,
    'Connection: close'
  ]
  socket.end(`${fields.join('\r\n')}\r\n\r\n${body}`)
}

const REASONS: Record<number, string> = { 400: 'Bad Request', 408: 'Request Timeout', 431: 'Request Header Fields Too Large' }

/** The size of all header fields, in bytes. */
export const HEADERS_LIMIT = 16_384

function ofSocket (code: string | undefined): FastifyError {
  if (code === 'HPE_HEADER_OVERFLOW') return new errors.HeadersTooLarge(HEADERS_LIMIT)
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new errors.RequestTimeout()
  return new errors.BadRequest('This is not HTTP as RFC 9112 describes it')
}
