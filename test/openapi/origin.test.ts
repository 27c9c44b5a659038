// Only on SQLite: checks documents, which no database decides.

import { load } from 'js-yaml'
import t from 'tap'
import { startApp } from '../support/app.ts'

const PATHS = [
  ...['/openapi', '/openapi-3.1', '/openapi-3.2'].flatMap((path) => [`${path}.json`, `${path}.yaml`]),
  '/arazzo.json', '/asyncapi.json', '/docs/samples.json'
]

t.test('each client gets documents with the origin at which it reached the service', async (t) => {
  const { nobody } = await startApp(t, { TRUST_PROXY: 'true' })
  const hosts = Array.from({ length: 10 }, (_, i) => `${'a'.repeat(i)}.pets.example:8080`)
  for (const path of PATHS) {
    const { text: reference } = await nobody.get(path, { host: 'reference.example' })
    const tags = new Set<unknown>()
    for (const host of [...hosts, ...hosts]) {
      for (const protocol of ['http', 'https']) {
        const { headers: { etag }, text } = await nobody.get(path, { host, 'x-forwarded-proto': protocol })
        tags.add(etag)
        const inPlaceOfReference = path === '/asyncapi.json'
          ? reference.replace('"http"', `"${protocol}"`)
          : reference.replaceAll('http://reference.example', `${protocol}://reference.example`)
        t.equal(text, inPlaceOfReference.replaceAll('reference.example', host), `${path} for ${protocol}://${host}`)
      }
    }
    t.equal(tags.size, 2 * hosts.length, 'and a tag for each')
    t.match(reference, 'reference.example')
  }
})

t.test('what a client claims as its origin enlarges no document, and breaks none', async (t) => {
  const { nobody } = await startApp(t, { TRUST_PROXY: 'true' })
  for (const path of PATHS) {
    const { text } = await nobody.get(path, { host: 'localhost' })
    for (const protocol of ['javascript', '"', "$'".repeat(200), '$&']) {
      t.equal((await nobody.get(path, { host: 'localhost', 'x-forwarded-proto': protocol })).text, text, protocol)
    }
    t.equal((await nobody.get(path, { host: 'a'.repeat(8000) })).text, text, 'a host that no name can be')
  }
})

t.test('an origin has one form, which every parser of YAML reads', async (t) => {
  const { nobody } = await startApp(t, { TRUST_PROXY: 'true' })
  for (const protocol of ['http', 'https']) {
    for (const path of [...PATHS, '/']) {
      const read = async (host: string) => (await nobody.get(path, { host, 'x-forwarded-proto': protocol })).text
      const text = await read('localhost')
      for (const host of ['localhost:', 'LOCALHOST', protocol === 'http' ? 'localhost:80' : 'localhost:443']) {
        t.equal(await read(host), text, `${path} for ${protocol}://${host}`)
      }
    }
    const { text } = await nobody.get('/openapi.yaml', { host: '[::1]:', 'x-forwarded-proto': protocol })
    t.match(load(text), { servers: [{ url: `${protocol}://[::1]` }] })
  }
})
