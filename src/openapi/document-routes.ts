import type { FastifyContextConfig, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { locationOf } from '../http/responses.ts'
import { cachedContent, sendCached, withETag } from '../http/cached-content.ts'
import { withOriginOf } from './origin.ts'

/** The document is public, so scripts of any origin may read it. */
const ANY_ORIGIN: FastifyContextConfig = { cors: { origin: '*' } }

type Send = (request: FastifyRequest, reply: FastifyReply) => FastifyReply | Promise<FastifyReply>

/** Registers a GET that scripts of any origin may call, and its preflight, which a hook answers. */
function serveToAnyOrigin (app: FastifyInstance, url: string, send: Send): void {
  app.get(url, { schema: { hide: true }, config: ANY_ORIGIN }, async (request, reply) => await send(request, reply))
  app.options(url, { schema: { hide: true }, config: ANY_ORIGIN }, async () => {})
}

/** Serves the document as JSON and as YAML (RFC 9512). */
export async function documentRoutes (app: FastifyInstance): Promise<void> {
  const json = cachedContent(() => JSON.stringify(app.swagger()))
  serveToAnyOrigin(app, '/openapi.json', (request, reply) =>
    sendCached(request, reply, 'application/json; charset=utf-8', withETag(withOriginOf(request, json().text))))
  let yaml: string | undefined
  serveToAnyOrigin(app, '/openapi.yaml', async (request, reply) => {
    yaml ??= await toYaml(json().text)
    return sendCached(request, reply, 'application/yaml; charset=utf-8', withETag(withOriginOf(request, yaml)))
  })
}

/** Converts JSON text, because YAML would turn an object of the document that occurs twice into an alias. */
async function toYaml (json: string): Promise<string> {
  // Few clients request YAML, and the module would make each start slower.
  const { stringify } = await import('yaml')
  // YAML 1.1 reads some plain strings of YAML 1.2 as times and booleans.
  return stringify(JSON.parse(json), { lineWidth: 0, compat: 'yaml-1.1' })
}

const LINKSET = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'

/**
 * Serves the API catalog (RFC 9727), by which programs discover the API, as a link set (RFC 9264). Its path never has
 * the base path as a prefix.
 */
export async function catalogRoutes (app: FastifyInstance): Promise<void> {
  const own = `${app.publicUrl}/.well-known/api-catalog`
  const links = {
    'service-desc': [
      { href: locationOf(app, '/openapi.json'), type: 'application/json' },
      { href: locationOf(app, '/openapi.yaml'), type: 'application/yaml' }
    ],
    'service-doc': [{ href: locationOf(app, '/docs'), type: 'text/html' }],
    status: [{ href: `${app.publicUrl}/readyz`, type: 'application/json' }]
  }
  const catalog = cachedContent(() => JSON.stringify({ linkset: [{ anchor: locationOf(app, '') || '/', ...links }] }))
  const linkValues = Object.entries(links).flatMap(([rel, targets]) =>
    targets.map(({ href, type }) => `<${href}>; rel="${rel}"; type="${type}"`))
  const field = [`<${own}>; rel="api-catalog"`, ...linkValues].join(', ')

  serveToAnyOrigin(app, '/.well-known/api-catalog', (request, reply) =>
    sendCached(request, reply.header('link', field), LINKSET, catalog()))
}
