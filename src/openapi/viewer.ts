import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { kept, sendKept } from './serve.ts'

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>Petstore API</title>
</head>
<body>
<div id="app"></div>
<noscript>This page needs JavaScript. The document itself is at <a href="openapi.json">openapi.json</a>.</noscript>
<script src="docs/viewer.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
`

/** Runs in the browser. What the viewer has no setting for, styles do. */
const START = `(async function start () {
  const answer = await fetch('openapi.json')
  const content = await answer.json()
  const operations = Object.values(content.paths).flatMap((methods) => Object.values(methods))
  const untested = operations.filter((operation) => operation['x-hideTryItPanel'] === true)
  Scalar.createApiReference('#app', {
    content,
    generateOperationSlug: ({ method, path }) => content.paths[path][method.toLowerCase()].operationId,
    customCss: [
      'a[href*="scalar.com"] { display: none }',
      // Beside a request stands a list of all others, those that are not to be tried included.
      '.scalar-client .scalar-sidebar-toggle, .scalar-client .scalar-sidebar-toggle + div { display: none !important }',
      ...untested.map(({ operationId }) => '[id$="/' + operationId + '"] .show-api-client-button { display: none }')
    ].join('\\n'),
    agent: { disabled: true },
    withDefaultFonts: false,
    telemetry: false,
    showDeveloperTools: 'never',
    hideClientButton: true,
    defaultOpenAllTags: true,
    orderSchemaPropertiesBy: 'preserve'
  })
})()
`

/** The viewer writes styles into the page as it goes; it talks to nobody but this service. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'"
].join(';')

/** `/docs`: the document for people, with requests that can be tried. Works offline. */
export async function viewerRoutes (app: FastifyInstance): Promise<void> {
  // One file that needs nothing else, as the package brings it.
  const viewer = join(createRequire(import.meta.url).resolve('@scalar/fastify-api-reference'), '../js/standalone.js')
  const page = kept(() => PAGE)
  const start = kept(() => START)
  const program = kept(() => readFileSync(viewer, 'utf8'))

  app.get('/docs', { schema: { hide: true } }, async (request, reply) =>
    sendKept(request, reply.header('content-security-policy', POLICY), 'text/html; charset=utf-8', page()))

  app.get('/docs/start.js', { schema: { hide: true } }, async (request, reply) =>
    sendKept(request, reply, 'text/javascript; charset=utf-8', start()))

  app.get('/docs/viewer.js', { schema: { hide: true } }, async (request, reply) =>
    sendKept(request, reply, 'text/javascript; charset=utf-8', program()))
}
