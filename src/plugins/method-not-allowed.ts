import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import FindMyWay from 'find-my-way'
import { ACCEPT_PATCH } from './content-type-parsers.ts'
import { MethodNotAllowed, RouteNotFound } from '../errors.ts'
import { MAX_HEAD_BYTES } from './request-head.ts'

/**
 * Answers requests that match no route: 404, 405 with `Allow`, or 204 for OPTIONS. Runs in `onRequest`, before
 * authentication and body parsing. Register it before the routes: it learns them from `onRoute`.
 */
export const methodNotAllowed = fp(async function methodNotAllowed (app: FastifyInstance) {
  const paths = FindMyWay({ maxParamLength: MAX_HEAD_BYTES })
  const methodsByPath = new Map<string, Set<string>>()

  app.addHook('onRoute', ({ url, method }) => {
    if (url.includes('*')) return
    let methods = methodsByPath.get(url)
    if (methods === undefined) {
      methods = new Set()
      methodsByPath.set(url, methods)
      paths.on('GET', url, () => {}, methods)
    }
    for (const name of [method].flat()) if (name !== 'OPTIONS') methods.add(name)
  })

  app.addHook('onRequest', (request, reply, done) => {
    if (!request.is404 && request.method !== 'OPTIONS') {
      return done(hasEmptyParam(request.params) ? new RouteNotFound() : undefined)
    }
    const [path = ''] = request.url.split('?')
    const found = paths.find('GET', path)
    if (found === null || hasEmptyParam(found.params)) throw new RouteNotFound()
    const methods = found.store as Set<string>
    reply.header('allow', [...methods, 'OPTIONS'].join(', '))
    if (request.method !== 'OPTIONS') throw new MethodNotAllowed(request.method)
    if (methods.has('PATCH')) reply.header('accept-patch', ACCEPT_PATCH)
    reply.code(204).send()
  })
}, { name: 'method-not-allowed', dependencies: ['cors', 'request-head'] })

/** Detects paths such as `/pets/`, which the router matches as a pet with an empty id. No such path exists. */
function hasEmptyParam (params: unknown): boolean {
  const values = params as Record<string, string>
  for (const name in values) {
    if (values[name] === '' && name !== '*') return true
  }
  return false
}
