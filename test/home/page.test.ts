// Only on SQLite: drives the first page in a browser, over HTTP.

import t from 'tap'
import { startApp } from '../support/app.ts'

t.test('the first page links to the documents, and its requests contain the host of the request', async (t) => {
  const { nobody } = await startApp(t)
  const { status, headers, text } = await nobody.get('/?unknown=1', { host: 'pets.example:8080' })
  t.equal(status, 200)
  t.equal(headers['content-type'], 'text/html; charset=utf-8')
  t.equal(headers['cache-control'], 'no-cache')
  t.match(text, 'curl http://pets.example:8080/accounts')
  for (const path of ['docs', 'openapi.json', 'openapi.yaml']) t.match(text, `href="./${path}"`)
  t.notMatch((await nobody.get('/', { host: '"><script>' })).text, '"><script>')
  t.notMatch(text, '{{', 'no placeholder is left')

  t.equal((await nobody.get('/', { host: 'pets.example:8080', 'if-none-match': String(headers.etag) })).status, 304)
  t.equal((await nobody.get('/', { host: 'other.example', 'if-none-match': String(headers.etag) })).status, 200)
  t.equal((await nobody.request('HEAD', '/')).status, 200)
  t.equal((await nobody.request('POST', '/')).headers.allow, 'GET, HEAD, OPTIONS')
})

t.test('its content security policy allows only its own files and this service', async (t) => {
  const { nobody } = await startApp(t, { PUBLIC_URL: 'https://pets.example' })
  const { headers, text } = await nobody.get('/')
  const policy = String(headers['content-security-policy'])
  for (const rule of [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "form-action 'none'",
    "frame-ancestors 'none'"
  ]) {
    t.ok(policy.split(';').includes(rule), rule)
  }
  t.notMatch(policy, /unsafe|https?:|\*/)
  t.notMatch(text, /<style|<script(?![^>]* src=)|\son[a-z]+=|\sstyle=|javascript:/, 'the page has no inline code')
  t.notMatch(
    text.replaceAll('https://pets.example', ''),
    /(?:src|href)="(?!\.\/|#)|https?:/,
    'the page loads only its own files'
  )
})

t.test('browsers can store its files, but must revalidate them', async (t) => {
  const { nobody } = await startApp(t, { BASE_PATH: '/shop/v1' })
  for (const [path, root] of [['/shop/v1', './v1/'], ['/shop/v1/', './']] as const) {
    const { text } = await nobody.get(path)
    const files = [...text.matchAll(/(?:src|href)="(\.\/[^"]*docs\/home\/[^"]+)"/g)].map(([, file]) => file!)
    t.ok(files.length >= 3)
    for (const file of files) {
      t.ok(file.startsWith(root), file)
      const address = new URL(file, `http://service${path}`).pathname
      const { status, headers } = await nobody.get(address)
      t.equal(status, 200, address)
      t.match(headers['content-type'], /^(text\/(css|javascript|plain)|image\/svg\+xml)/)
      t.equal(headers['cache-control'], 'no-cache')
      t.equal((await nobody.get(address, { 'if-none-match': String(headers.etag) })).status, 304)
    }
  }
  for (const name of ['page.html', '../routes.ts', '%2e%2e/routes.ts', 'nothing.js', '']) { t.equal((await nobody.get(`/shop/v1/docs/home/${name}`)).status, 404, name) }
})
