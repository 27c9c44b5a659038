import type { FastifyContextConfig, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { locationOf } from '../http/responses.ts'
import { cachedContent, sendCached } from '../http/cached-content.ts'
import { toArazzo } from './arazzo.ts'
import { toAsyncapi } from './asyncapi.ts'
import { toOpenapi31, toOpenapi32 } from './newer-versions.ts'
import { contentByOrigin, PLACEHOLDER_ORIGIN } from './origin.ts'
import type { SharedDocument } from './share-components.ts'

/** The document is public, so scripts of any origin may read it. */
const ANY_ORIGIN: FastifyContextConfig = { cors: { origin: '*' } }

type Send = (request: FastifyRequest, reply: FastifyReply) => FastifyReply | Promise<FastifyReply>

/** Registers a GET that scripts of any origin may call, and its preflight, which a hook answers. */
function serveToAnyOrigin (app: FastifyInstance, url: string, send: Send): void {
  app.get(url, { schema: { hide: true }, config: ANY_ORIGIN }, async (request, reply) => await send(request, reply))
  app.options(url, { schema: { hide: true }, config: ANY_ORIGIN }, async () => {})
}

/** The documents that are made of the one of version 3.0.3, by path. */
const OPENAPI_VERSIONS: Record<string, (document: SharedDocument) => object> = {
  '/openapi': (document) => document, '/openapi-3.1': toOpenapi31, '/openapi-3.2': toOpenapi32
}
const OTHER_DOCUMENTS: Record<string, (document: SharedDocument) => object> = {
  '/arazzo.json': toArazzo, '/asyncapi.json': toAsyncapi
}

const JSON_TYPE = 'application/json; charset=utf-8'
const YAML_TYPE = 'application/yaml; charset=utf-8'

/** Serves the OpenAPI document in each version as JSON and as YAML (RFC 9512), and the documents beside it. */
export async function documentRoutes (app: FastifyInstance): Promise<void> {
  const source = (): SharedDocument => app.swagger() as unknown as SharedDocument
  for (const [path, make] of Object.entries(OPENAPI_VERSIONS)) {
    let made: string | undefined
    const json = (): string => (made ??= JSON.stringify(make(source())))
    serve(`${path}.json`, JSON_TYPE, json)
    serve(`${path}.yaml`, YAML_TYPE, async () => await toYaml(json()))
  }
  for (const [path, make] of Object.entries(OTHER_DOCUMENTS)) {
    serve(path, JSON_TYPE, (origin) => {
      // An AsyncAPI document has the parts of the address apart.
      const servers = [{ url: source().servers[0]!.url.replace(PLACEHOLDER_ORIGIN, origin) }]
      return JSON.stringify(make({ ...source(), servers }))
    })
  }

  function serve (path: string, type: string, make: (origin: string) => string | Promise<string>): void {
    const content = contentByOrigin(make)
    serveToAnyOrigin(app, path, async (request, reply) => sendCached(request, reply, type, await content(request)))
  }
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
    'service-desc': [...Object.keys(OPENAPI_VERSIONS).flatMap((path) => [`${path}.json`, `${path}.yaml`]),
      ...Object.keys(OTHER_DOCUMENTS)].map((path) => (
      { href: locationOf(app, path), type: path.endsWith('.json') ? 'application/json' : 'application/yaml' }
    )),
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
