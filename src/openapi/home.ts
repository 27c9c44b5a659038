import { createHash } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { sendKept } from './serve.ts'

const STYLE = `
:root { color-scheme: light dark }
body { font: 16px/1.6 system-ui, sans-serif; max-width: 44rem; margin: 4rem auto; padding: 0 1.5rem }
pre { padding: 1rem; overflow-x: auto; border: 1px solid; border-radius: 6px; font-size: 14px }
a { color: LinkText }
`

const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'"
].join(';')

/** A person's first page: what this is, where to read on, and requests that work when pasted. */
export async function homeRoutes (app: FastifyInstance): Promise<void> {
  app.get('/', { schema: { hide: true } }, async (request, reply) => {
    // The name that the reader reached us by, unless it is no name.
    const host = /^[A-Za-z0-9.:[\]-]+$/.test(request.host) ? request.host : 'localhost'
    const text = page(app.publicUrl === '' ? `${request.protocol}://${host}${app.basePath}` : app.publicUrl + app.basePath)
    const etag = `"${createHash('sha256').update(text).digest('base64url')}"`
    return sendKept(request, reply.header('content-security-policy', POLICY), 'text/html; charset=utf-8', { text, etag })
  })
}

/** Links name the whole address, because the page is found with and without a slash at its end. */
function page (server: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>Petstore</title>
<style>${STYLE}</style>
</head>
<body>
<h1>Petstore</h1>
<p>A pet store over HTTP: pets in categories, their stock, orders, and messages, as JSON. An account is a store of its own.</p>
<p><a href="${server}/docs">Read and try the operations</a>, or take the OpenAPI document as <a href="${server}/openapi.json">JSON</a> or <a href="${server}/openapi.yaml">YAML</a>.</p>
<h2>First requests</h2>
<p>Open an account. The answer holds your API key, this once:</p>
<pre><code>curl ${server}/accounts \\
  -H 'Content-Type: application/json' \\
  -d '{"name": "My store"}'</code></pre>
<p>Send a message with it:</p>
<pre><code>curl ${server}/messages \\
  -H 'Authorization: Bearer &lt;API_KEY&gt;' \\
  -H 'Content-Type: application/json' \\
  -d '{"message": "Hello"}'</code></pre>
</body>
</html>
`
}
