// Only on SQLite: checks the document and its viewer.

import t from 'tap'
import { startApp } from '../support/app.ts'

t.test('/docs and its programs', async (t) => {
  const service = await startApp(t)
  const { nobody } = service

  await t.test('allow the page nothing but this service', async (t) => {
    const { headers, text } = await nobody.get('/docs')
    t.equal(headers['content-type'], 'text/html; charset=utf-8')
    const policy = String(headers['content-security-policy'])
    t.match(policy, "default-src 'none'")
    t.match(policy, "script-src 'self';")
    t.match(policy, "connect-src 'self';")
    t.notMatch(policy, /https?:|\*|unsafe-eval/)
    t.notMatch(text, /https?:/)
  })

  await t.test('are kept by browsers that ask whether they changed', async (t) => {
    for (const path of ['/docs', '/docs/docs.css', '/docs/start.js', '/docs/viewer.js']) {
      const { status, headers } = await nobody.get(path)
      t.equal(status, 200)
      t.equal((await nobody.get(path, { 'if-none-match': String(headers.etag) })).status, 304, path)
    }
    t.equal((await nobody.get('/docs/other.js')).status, 404)
  })

  await t.test('come packed to who takes that', async (t) => {
    const plain = await nobody.get('/docs/viewer.js', { 'accept-encoding': 'br, gzip;q=0' })
    t.equal(plain.headers['content-encoding'], undefined)
    const { port } = service
    const packed = await fetch(`http://127.0.0.1:${port}/docs/viewer.js`)
    t.equal(packed.headers.get('content-encoding'), 'gzip')
    t.equal(packed.headers.get('vary'), 'Accept-Encoding')
    const { nobody: elsewhere } = await startApp(t, { CORS_ORIGINS: 'https://a.example' })
    t.equal(
      (await elsewhere.get('/docs/viewer.js', { origin: 'https://a.example' })).headers['vary'],
      'Origin, Accept-Encoding'
    )
    t.not(packed.headers.get('etag'), plain.headers.etag, 'other bytes have another tag')
    t.equal(await packed.text(), plain.text)
    t.equal(
      (
        await nobody.get('/docs/viewer.js', {
          'accept-encoding': 'gzip',
          'if-none-match': packed.headers.get('etag')!
        })
      ).status,
      304
    )
  })

  await t.test('answer errors that are not packed', async (t) => {
    for (const [field, value, status, code] of [
      ['if-match', '"x"', 412, 'precondition_failed'], ['if-none-match', 'x', 400, 'validation_failed']
    ] as const) {
      const answer = await nobody.get('/docs/viewer.js', { 'accept-encoding': 'gzip', [field]: value })
      t.match(answer, { status, body: { code }, headers: { vary: 'Accept-Encoding', 'cache-control': 'no-store' } })
      t.notOk('content-encoding' in answer.headers, code)
    }
  })
})
