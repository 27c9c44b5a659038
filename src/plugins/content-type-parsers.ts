import { isUtf8 } from 'node:buffer'
import type { FastifyInstance, FastifyReply, FastifyRequest, HookHandlerDoneFunction, RouteOptions } from 'fastify'
import secureJson from 'secure-json-parse'
import { InvalidContentType, InvalidJson, ValidationFailed } from '../errors.ts'

/** A patch may say that it is a merge patch (RFC 7396); it is read as one either way. */
export const MERGE_PATCH = 'application/merge-patch+json'

const IS_JSON = /^\s*application\/json\s*(;|$)/i
const IS_MERGE_PATCH = /^\s*application\/merge-patch\+json\s*(;|$)/i

/** What `Accept-Patch` (RFC 5789 section 3.1) says wherever a patch is taken. */
export const ACCEPT_PATCH = `application/json, ${MERGE_PATCH}`

/**
 * How request bodies are read: JSON and nothing else, where the operation takes a body; where it takes
 * none, whatever came is ignored. Works on the scope it is called with and those inside.
 */
export function contentTypeParsers (app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(['application/json', MERGE_PATCH], { parseAs: 'buffer' }, (_request: FastifyRequest, body: Buffer, done) => { done(null, parseJson(body)) })
  app.addContentTypeParser('*', (_request, payload, done) => {
    payload.resume()
    done(null, undefined)
  })
  app.addHook('onRoute', judgeContentType)
}

/** Fastify reads no body of these. */
const BODYLESS = new Set(['GET', 'HEAD'])

function judgeContentType (route: RouteOptions): void {
  if ([route.method].flat().every((method) => BODYLESS.has(method))) return
  route.preParsing = route.schema?.body === undefined ? ignoreBody : requireJsonContentType
}

/** Without a content type the body falls to the parser that drops it. */
function ignoreBody ({ raw: { headers } }: FastifyRequest, _reply: FastifyReply, _payload: unknown, done: HookHandlerDoneFunction): void {
  delete headers['content-type']
  done()
}

function requireJsonContentType (request: FastifyRequest, reply: FastifyReply, _payload: unknown, done: HookHandlerDoneFunction): void {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = request.raw.headers
  const patch = request.method === 'PATCH'
  const known = IS_JSON.test(type) || (patch && IS_MERGE_PATCH.test(type))
  if (!known || encoding.toLowerCase() !== 'identity') {
    if (patch) reply.header('accept-patch', ACCEPT_PATCH)
    throw new InvalidContentType(patch ? `application/json or ${MERGE_PATCH}` : 'application/json')
  }
  done()
}

/** What secure-json-parse says. V8's own words quote the body, which may hold anything. */
const FORBIDDEN = 'Object contains forbidden prototype property'

function parseJson (body: Buffer): unknown {
  if (body.length === 0) throw new InvalidJson('it is empty')
  if (!isUtf8(body)) throw new InvalidJson('its bytes are not UTF-8')
  try {
    return secureJson.parse(body.toString('utf8'), undefined, { protoAction: 'error', constructorAction: 'ignore' })
  } catch (error) {
    const { message } = error as Error
    if (message === FORBIDDEN) throw new ValidationFailed('"__proto__" is not known here')
    throw new InvalidJson(position(message))
  }
}

/** What V8 says, without the piece of the body that it quotes. */
function position (message: string): string {
  const [at] = /position \d+/.exec(message) ?? []
  return at === undefined ? 'it ends too early or holds what JSON does not allow' : `see ${at}`
}
