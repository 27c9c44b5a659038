import type { FastifyInstance, FastifyReply, FastifyRequest, HookHandlerDoneFunction, RouteOptions } from 'fastify'
import fp from 'fastify-plugin'
import { sendContinue } from '../http/expect-continue.ts'
import { InvalidContentType } from '../errors.ts'
import { NDJSON, parseJson } from '../http/json-text.ts'
import { accountOf } from './admission.ts'

/** The media type of a merge patch (RFC 7396). A PATCH body is a merge patch with either media type. */
export const MERGE_PATCH = 'application/merge-patch+json'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The body is lines of JSON. Its scope has the parser. */
    hasLines?: boolean
  }
}

const IS_NDJSON = /^\s*application\/x-ndjson\s*(;|$)/i
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
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity', 'content-length': length = 0 } =
    request.raw.headers
  const isPatch = request.method === 'PATCH'
  const { config: { hasLines }, bodyLimit } = request.routeOptions
  const isJson = IS_JSON.test(type) || (isPatch && IS_MERGE_PATCH.test(type))
  const isAllowed = hasLines === true ? IS_NDJSON.test(type) : isJson
  if (!isAllowed || encoding.toLowerCase() !== 'identity') {
    if (isPatch) reply.header('accept-patch', ACCEPT_PATCH)
    const json = isPatch ? `application/json or ${MERGE_PATCH}` : 'application/json'
    throw new InvalidContentType(hasLines === true ? NDJSON : json)
  }
  // Fastify refuses a longer body by its announced length.
  if (Number(length) <= bodyLimit) sendContinue(reply.raw)
  done()
}

function parsed (body: Buffer): [error: Error | null, value?: unknown] {
  try {
    return [null, parseJson(body)]
  } catch (error) {
    return [error as Error]
  }
}
