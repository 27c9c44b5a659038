import type { FastifyInstance } from 'fastify'
import FindMyWay from 'find-my-way'
import { ACCEPT_PATCH } from './content-type-parsers.ts'
import { MethodNotAllowed, RouteNotFound } from '../errors.ts'
import { MAX_HEAD_BYTES } from './request-head.ts'

/**
 * What happens to requests that no route takes: 404, 405 with `Allow`, or 204 to OPTIONS. Decided before
 * anything is read of the request. Knows every route registered after it was called.
 */
export function methodNotAllowed (app: FastifyInstance): void {
  const paths = FindMyWay({ maxParamLength: MAX_HEAD_BYTES })
  const methods = new Map<string, Set<string>>()

  app.addHook('onRoute', ({ url, method }) => {
    if (url.includes('*')) return
    let known = methods.get(url)
    if (known === undefined) {
      known = new Set()
      methods.set(url, known)
      paths.on('GET', url, () => {}, known)
    }
    for (const name of [method].flat()) if (name !== 'OPTIONS') known.add(name)
  })

  app.addHook('onRequest', (request, reply, done) => {
    if (!request.is404 && request.method !== 'OPTIONS') {
      return done(isEmptyId(request.params) ? new RouteNotFound() : undefined)
    }
    const [path = ''] = request.url.split('?')
    const found = paths.find('GET', path)
    if (found === null || isEmptyId(found.params)) throw new RouteNotFound()
    const known = found.store as Set<string>
    reply.header('allow', [...known, 'OPTIONS'].join(', '))
    if (request.method !== 'OPTIONS') throw new MethodNotAllowed(request.method)
    if (known.has('PATCH')) reply.header('accept-patch', ACCEPT_PATCH)
    reply.code(204).send()
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
