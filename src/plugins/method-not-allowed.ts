import { basename, dirname } from 'node:path/posix'
import type { FastifyInstance, FastifyReply } from 'fastify'
import fp from 'fastify-plugin'
import FindMyWay from 'find-my-way'
import { ACCEPT_PATCH } from './content-type-parsers.ts'
import { MethodNotAllowed, RouteNotFound } from '../errors.ts'
import { MAX_HEAD_BYTES } from './request-head.ts'

export interface MethodNotAllowedOptions {
  /** Whether the lab is on. Without it, the 404 of its paths says how to turn it on. */
  lab: boolean
}

/**
 * Answers requests that match no route: 404, 405 with `Allow`, or 204 for OPTIONS. Runs in `onRequest`, before
 * authentication and body parsing. Register it before the routes: it learns them from `onRoute`.
 */
export const methodNotAllowed = fp(async function methodNotAllowed (
  app: FastifyInstance, { lab }: MethodNotAllowedOptions
) {
  const isOfLab = (path: string): boolean => path.startsWith(`${app.basePath}/lab/`) || path === `${app.basePath}/mcp`
  const notFound = (path: string): Error => !lab && isOfLab(path)
    ? new RouteNotFound('The lab is off. Start the service with LAB=true to turn it on.')
    : routeNotFound(app)
  const paths = FindMyWay({ maxParamLength: MAX_HEAD_BYTES })
  const methodsByPath = new Map<string, Set<string>>()
  /** Last segments of paths such as `/items/import`, whose other methods the router matches as `/items/:id`. */
  const staticNames = new Set<string>()

  app.addHook('onRoute', ({ url, method }) => {
    if (url.includes('*')) return
    let methods = methodsByPath.get(url)
    if (methods === undefined) {
      methods = new Set()
      methodsByPath.set(url, methods)
      paths.on('GET', url, () => {}, methods)
    }
    for (const name of [method].flat()) {
      // Of the slash that Fastify adds to a prefix, as in `/v1/`, it announces HEAD alone.
      if (name === 'HEAD') methods.add('GET')
      if (name !== 'OPTIONS') methods.add(name)
    }
  })

  app.addHook('onReady', async () => {
    const urls = [...methodsByPath.keys()]
    const collections = new Set(urls.filter((url) => basename(url).startsWith(':')).map((url) => dirname(url)))
    for (const url of urls) if (collections.has(dirname(url))) staticNames.add(basename(url))
  })

  app.addHook('onRequest', (request, reply, done) => {
    if (!request.is404 && request.method !== 'OPTIONS') {
      if (hasEmptyParam(request.params)) return done(routeNotFound(app))
      if (!hasParamIn(request.params, staticNames)) return done()
    }
    const [path = ''] = request.url.split('?')
    if (path === '*') return sendServerOptions(reply)
    const found = paths.find('GET', path)
    if (found === null || hasEmptyParam(found.params)) throw notFound(path)
    const methods = found.store as Set<string>
    if (!request.is404 && methods.has(request.method)) return done()
    reply.header('allow', [...methods, 'OPTIONS'].join(', '))
    if (request.method !== 'OPTIONS') throw new MethodNotAllowed(request.method)
    if (methods.has('PATCH')) reply.header('accept-patch', ACCEPT_PATCH)
    reply.code(204).send()
  })
}, { name: 'method-not-allowed', dependencies: ['cors', 'public-url', 'request-head'] })

export function routeNotFound ({ basePath }: FastifyInstance): Error {
  return new RouteNotFound(`GET ${basePath}/openapi.json lists all routes.`)
}

/** Answers `OPTIONS *`, which asks for the methods of the service and not of a path (RFC 9110 section 9.3.7). */
function sendServerOptions (reply: FastifyReply): void {
  reply.header('allow', 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS').code(204).send()
}

/** Detects paths such as `/pets/`, which the router matches as a pet with an empty id. No such path exists. */
function hasEmptyParam (params: unknown): boolean {
  const values = params as Record<string, string>
  for (const name in values) {
    if (values[name] === '' && name !== '*') return true
  }
  return false
}

function hasParamIn (params: unknown, names: ReadonlySet<string>): boolean {
  const values = params as Record<string, string>
  for (const name in values) if (names.has(values[name]!)) return true
  return false
}
