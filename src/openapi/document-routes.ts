import type { FastifyContextConfig, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { stringify } from 'yaml'
import { locationOf } from '../http/responses.ts'
import { cachedContent, sendCached } from '../http/cached-content.ts'

/** Whatever is read by programs of others may be read by their pages, too. */
const OPEN_TO_ALL: FastifyContextConfig = { cors: { origin: '*' } }

/** A GET for everybody's pages, and the preflight that some send first, which is answered by a hook. */
function openToAll (app: FastifyInstance, url: string, send: (request: FastifyRequest, reply: FastifyReply) => FastifyReply): void {
  app.get(url, { schema: { hide: true }, config: OPEN_TO_ALL }, async (request, reply) => send(request, reply))
  app.options(url, { schema: { hide: true }, config: OPEN_TO_ALL }, async () => {})
}

/** The document, as JSON and as YAML (RFC 9512). */
export async function documentRoutes (app: FastifyInstance): Promise<void> {
  const json = cachedContent(() => JSON.stringify(app.swagger()))
  // From the JSON, because objects that the document holds twice would become anchors and aliases.
  const yaml = cachedContent(() => stringify(JSON.parse(json().text), { lineWidth: 0 }))

  openToAll(app, '/openapi.json', (request, reply) => sendCached(request, reply, 'application/json; charset=utf-8', json()))
  openToAll(app, '/openapi.yaml', (request, reply) => sendCached(request, reply, 'application/yaml; charset=utf-8', yaml()))
}

/** Where programs look for what there is (RFC 9727), as a link set (RFC 9264). Never under the base path. */
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
  const field = [
    `<${own}>; rel="api-catalog"`,
    ...Object.entries(links).flatMap(([rel, targets]) => targets.map(({ href, type }) => `<${href}>; rel="${rel}"; type="${type}"`))
  ].join(', ')

  openToAll(app, '/.well-known/api-catalog', (request, reply) =>
    sendCached(request, reply.header('link', field), 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"', catalog()))
}
