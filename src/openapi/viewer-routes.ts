import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import { MODULES } from '../folders.ts'
import { cachedContent, sendCached } from '../http/cached-content.ts'
import { addVary } from '../http/content-negotiation.ts'
import type { Sample } from './document.ts'
import { contentByOrigin } from './origin.ts'

/** The files that the browser loads, unbundled. */
const FOLDER = join(MODULES, 'openapi/page')

/** Scalar as one file without imports. scripts/build.mjs copies it out of the package. */
const VIEWER = join(MODULES, 'generated/viewer/standalone.js')

/** Content security policy: the viewer adds inline styles to the page, and connects only to this service. */
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

const JAVASCRIPT = 'text/javascript; charset=utf-8'

/** The files that the page loads from its folder, with their types. */
const FILES: Record<string, string> = { 'start.js': JAVASCRIPT, 'docs.css': 'text/css; charset=utf-8' }

export interface ViewerOptions {
  /** The sample requests of each operation, which are complete once the document is built. */
  samples: Record<string, Sample[]>
}

/** Serves `/docs`, a viewer of the document that can send requests. It works offline. */
export async function viewerRoutes (app: FastifyInstance, { samples }: ViewerOptions): Promise<void> {
  const page = cachedContent(() => readFileSync(join(FOLDER, 'docs.html'), 'utf8'))
  const program = cachedContent(() => readFileSync(VIEWER, 'utf8'))
  let packed: Promise<Buffer> | undefined

  app.get('/docs', { schema: { hide: true } }, async (request, reply) =>
    sendCached(request, reply.header('content-security-policy', POLICY), 'text/html; charset=utf-8', page()))

  for (const [name, type] of Object.entries(FILES)) {
    const file = cachedContent(() => readFileSync(join(FOLDER, name), 'utf8'))
    app.get(`/docs/${name}`, { schema: { hide: true } }, async (request, reply) =>
      sendCached(request, reply, type, file()))
  }

  const samplesFor = contentByOrigin(() => {
    // Builds the document, at its first call.
    app.swagger()
    return JSON.stringify(samples)
  })
  app.get('/docs/samples.json', { schema: { hide: true } }, async (request, reply) =>
    sendCached(request, reply, 'application/json; charset=utf-8', await samplesFor(request)))

  app.get('/docs/viewer.js', { schema: { hide: true } }, async (request, reply) => {
    const { body, etag } = program()
    // Added to `Origin`, which CORS sets.
    addVary(reply, 'Accept-Encoding')
    if (!/\bgzip\b(?!\s*;\s*q=0(?:\.0+)?\s*(?:,|$))/i.test(String(request.headers['accept-encoding'] ?? ''))) {
      return sendCached(request, reply, JAVASCRIPT, { body, etag })
    }
    packed ??= promisify(gzip)(body)
    // Different bytes need a different strong tag (RFC 9110 section 8.8.3.3).
    const content = { body: await packed, etag: etag.replace(/"$/, '-gzip"') }
    return sendCached(request, reply.header('content-encoding', 'gzip'), JAVASCRIPT, content)
  })
}
