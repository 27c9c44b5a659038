import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import { cachedContent, sendCached } from '../http/cached-content.ts'

/** What the browser gets, as it lies here; the build copies it to where this file goes. */
const FOLDER = join(import.meta.dirname, 'page')

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

const JAVASCRIPT = 'text/javascript; charset=utf-8'

/** `/docs`: the document for people, with requests that can be tried. Works offline. */
export async function viewerRoutes (app: FastifyInstance): Promise<void> {
  // One file that needs nothing else, as the package brings it.
  const viewer = join(createRequire(import.meta.url).resolve('@scalar/fastify-api-reference'), '../js/standalone.js')
  const page = cachedContent(() => readFileSync(join(FOLDER, 'docs.html'), 'utf8'))
  const start = cachedContent(() => readFileSync(join(FOLDER, 'start.js'), 'utf8'))
  const program = cachedContent(() => readFileSync(viewer, 'utf8'))
  let packed: Promise<Buffer> | undefined

  app.get('/docs', { schema: { hide: true } }, async (request, reply) =>
    sendCached(request, reply.header('content-security-policy', POLICY), 'text/html; charset=utf-8', page()))

  app.get('/docs/start.js', { schema: { hide: true } }, async (request, reply) =>
    sendCached(request, reply, JAVASCRIPT, start()))

  app.get('/docs/viewer.js', { schema: { hide: true } }, async (request, reply) => {
    const { text, etag } = program()
    // Beside `Origin`, where pages of others may read.
    reply.header('vary', [reply.getHeader('vary') ?? [], 'Accept-Encoding'].flat().join(', '))
    if (!/\bgzip\b(?!\s*;\s*q=0(?:\.0+)?\s*(?:,|$))/i.test(String(request.headers['accept-encoding'] ?? ''))) {
      return sendCached(request, reply, JAVASCRIPT, { text, etag })
    }
    packed ??= promisify(gzip)(text)
    // Other bytes, another strong tag (RFC 9110 section 8.8.3.3).
    return sendCached(request, reply.header('content-encoding', 'gzip'), JAVASCRIPT, { text: await packed, etag: etag.replace(/"$/, '-gzip"') })
  })
}
