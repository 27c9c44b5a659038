import { isUtf8 } from 'node:buffer'
import type { FastifyInstance, FastifyReply, FastifyRequest, HookHandlerDoneFunction, RouteOptions } from 'fastify'
import fp from 'fastify-plugin'
import secureJson from 'secure-json-parse'
import { sendContinue } from '../http/expect-continue.ts'
import { InvalidContentType, InvalidJson, ValidationFailed } from '../errors.ts'
import { accountOf } from './admission.ts'

/** The media type of a merge patch (RFC 7396). A PATCH body is a merge patch with either media type. */
export const MERGE_PATCH = 'application/merge-patch+json'

const IS_JSON = /^\s*application\/json\s*(;|$)/i
const IS_MERGE_PATCH = /^\s*application\/merge-patch\+json\s*(;|$)/i

/** The value of `Accept-Patch` (RFC 5789 section 3.1) for every path that has a PATCH operation. */
export const ACCEPT_PATCH = `application/json, ${MERGE_PATCH}`

/**
 * Accepts JSON bodies alone, for operations with a body, and ignores the bodies of all other operations. Applies to
 * the scope in which it is registered, and to the scopes inside it.
 */
export const contentTypeParsers = fp(async function contentTypeParsers (app: FastifyInstance) {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser<Buffer>(['application/json', MERGE_PATCH], { parseAs: 'buffer' }, (request, body, done) => {
    const account = accountOf(request)
    const parse = (): void => {
      const began = performance.now()
      // `done` also validates the body, and begins to handle the request.
      done(...parsed(body))
      app.admission.charge(account, began, body.length)
    }
    const admitted = app.admission.admitBody(account, body.length)
    if (admitted === undefined) parse()
    else void admitted.then(parse)
  })
  // Leaves the body unread: a large one ends the connection.
  app.addContentTypeParser('*', (_request, _payload, done) => { done(null, undefined) })
  app.addHook('onRoute', addContentTypeCheck)
}, { name: 'content-type-parsers', dependencies: ['admission'] })

/** Methods whose bodies Fastify does not read. */
const BODILESS_METHODS = new Set(['GET', 'HEAD'])

function addContentTypeCheck (route: RouteOptions): void {
  if ([route.method].flat().every((method) => BODILESS_METHODS.has(method))) return
  const check = route.schema?.body === undefined ? ignoreBody : requireJsonContentType
  route.preParsing = [check, ...[route.preParsing ?? []].flat()]
}

/** Hides the content type from Fastify, so that the parser for `*` leaves the body unread. */
function ignoreBody (
  request: FastifyRequest, reply: FastifyReply, _payload: unknown, done: HookHandlerDoneFunction
): void {
  sendContinue(reply.raw)
  if (request.headers['content-type'] !== undefined) request.headers = { ...request.headers, 'content-type': undefined }
  done()
}

function requireJsonContentType (
  request: FastifyRequest, reply: FastifyReply, _payload: unknown, done: HookHandlerDoneFunction
): void {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = request.raw.headers
  const isPatch = request.method === 'PATCH'
  const isAllowed = IS_JSON.test(type) || (isPatch && IS_MERGE_PATCH.test(type))
  if (!isAllowed || encoding.toLowerCase() !== 'identity') {
    if (isPatch) reply.header('accept-patch', ACCEPT_PATCH)
    throw new InvalidContentType(isPatch ? `application/json or ${MERGE_PATCH}` : 'application/json')
  }
  sendContinue(reply.raw)
  done()
}

/** A message of secure-json-parse. Messages of V8 are never sent: they quote the body, which may hold secrets. */
const FORBIDDEN_MEMBER = 'Object contains forbidden prototype property'

function parsed (body: Buffer): [error: Error | null, value?: unknown] {
  try {
    return [null, parseJson(body)]
  } catch (error) {
    return [error as Error]
  }
}

function parseJson (body: Buffer): unknown {
  if (body.length === 0) throw new InvalidJson('it is empty')
  if (!isUtf8(body)) throw new InvalidJson('its bytes are not UTF-8')
  try {
    return secureJson.parse(body.toString('utf8'), undefined, { protoAction: 'error', constructorAction: 'ignore' })
  } catch (error) {
    const { message } = error as Error
    if (message === FORBIDDEN_MEMBER) throw new ValidationFailed('"__proto__" is not allowed')
    throw new InvalidJson(describeSyntaxError(message))
  }
}

/** Returns the position that V8 reports, without the part of the body that V8 quotes. */
function describeSyntaxError (message: string): string {
  const [position] = /position \d+/.exec(message) ?? []
  return position === undefined ? 'it is incomplete or contains a syntax error' : `see ${position}`
}
