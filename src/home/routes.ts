import { readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { MODULES, PACKAGE, packageInfo } from '../folders.ts'
import { cachedContent, contentOf, sendCached } from '../http/cached-content.ts'
import { originOf } from '../http/request-origin.ts'

export interface HomeOptions {
  /** Tells whether clients can create accounts. */
  signup: 'open' | 'closed'
  /** Whether the page has the panel of the lab. */
  lab: boolean
}

/** The files of the page, unbundled. */
const FOLDER = join(MODULES, 'home/page')

/** Only where the service has a lab. */
const OF_THE_LAB = ['lab.js', 'journal.js']

const TYPES: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml'
}

/** Content security policy: the page connects only to this service and runs only its own files. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'"
].join(';')

/** Serves the first page, on which people create a store, send a message and watch the events. */
export async function homeRoutes (app: FastifyInstance, { signup, lab }: HomeOptions): Promise<void> {
  const panel = lab ? readFileSync(join(FOLDER, 'lab.html'), 'utf8') : ''
  // As a function: a text could contain patterns of replacements.
  const template = readFileSync(join(FOLDER, 'page.html'), 'utf8').replace('{{lab}}', () => panel)
  const lastSegment = app.basePath.split('/').at(-1) ?? ''

  app.get('/', { schema: { hide: true } }, async (request, reply) => {
    const [path = ''] = request.url.split('?')
    const text = fillTemplate(template, {
      // Relative, because a proxy may add a path prefix. The page exists with and without a slash at its end.
      root: path.endsWith('/') || lastSegment === '' ? './' : `./${lastSegment}/`,
      server: (app.publicUrl || originOf(request)) + app.basePath,
      signup,
      needsKey: signup === 'open' ? 'Create a store first.' : 'Enter an API key first.',
      version: packageInfo.version
    })
    reply.header('content-security-policy', POLICY)
    return sendCached(request, reply, 'text/html; charset=utf-8', contentOf(text))
  })

  const license = cachedContent(() => readFileSync(join(PACKAGE, 'LICENSE'), 'utf8'))
  app.get('/docs/home/license.txt', { schema: { hide: true } }, async (request, reply) =>
    sendCached(request, reply, 'text/plain; charset=utf-8', license()))

  // Under /docs, like the API reference: these routes are for people and need no API key.
  for (const name of readdirSync(FOLDER)) {
    const type = TYPES[extname(name)]
    if (type === undefined || (!lab && OF_THE_LAB.includes(name))) continue
    const file = cachedContent(() => readFileSync(join(FOLDER, name), 'utf8'))
    app.get(`/docs/home/${name}`, { schema: { hide: true } }, async (request, reply) =>
      sendCached(request, reply, type, file()))
  }
}

function fillTemplate (template: string, values: Record<string, string>): string {
  return template.replace(/\{\{(\w+)\}\}/g, (_, name: string) => escapeHtml(values[name] ?? ''))
}

function escapeHtml (text: string): string {
  return text.replace(/[&<"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
