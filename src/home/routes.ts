import { readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { cachedContent, sendCached, withETag } from '../http/cached-content.ts'

export interface HomeOptions {
  /** Whether anybody may open an account. */
  signup: 'open' | 'closed'
}

/** What the browser gets, as it lies here; the build copies it to where this file goes. */
const FOLDER = join(import.meta.dirname, 'page')

const TYPES: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml'
}

/** The page talks to this service and to nobody else, and runs nothing but its own files. */
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

/** A person's first page: open a store, send a message, watch it happen; and the files of that page. */
export async function homeRoutes (app: FastifyInstance, { signup }: HomeOptions): Promise<void> {
  const template = readFileSync(join(FOLDER, 'page.html'), 'utf8')
  const below = app.basePath.split('/').at(-1) ?? ''

  app.get('/', { schema: { hide: true } }, async (request, reply) => {
    const [path = ''] = request.url.split('?')
    const text = filled(template, {
      // Relative to the page, which is found with and without a slash at its end: a proxy may have put more before it.
      root: path.endsWith('/') || below === '' ? './' : `./${below}/`,
      server: (app.publicUrl || `${request.protocol}://${nameOf(request.host)}`) + app.basePath,
      signup
    })
    return sendCached(request, reply.header('content-security-policy', POLICY), 'text/html; charset=utf-8', withETag(text))
  })

  // Below /docs, where all is for people and nothing asks for a key.
  for (const name of readdirSync(FOLDER)) {
    const type = TYPES[extname(name)]
    if (type === undefined) continue
    const file = cachedContent(() => readFileSync(join(FOLDER, name), 'utf8'))
    app.get(`/docs/home/${name}`, { schema: { hide: true } }, async (request, reply) => sendCached(request, reply, type, file()))
  }
}

function filled (template: string, values: Record<string, string>): string {
  return template.replace(/\{\{(\w+)\}\}/g, (_, name: string) => (values[name] ?? '').replace(/[&<"']/g, (character) => `&#${character.charCodeAt(0)};`))
}

/** The name that the reader reached us by, unless it is no name. */
function nameOf (host: string): string {
  return /^[A-Za-z0-9.:[\]-]+$/.test(host) ? host : 'localhost'
}
