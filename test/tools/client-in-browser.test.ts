import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { startApp } from '../support/app.ts'
import { openBrowser, withoutBrowser } from './browser.ts'
import { build, ROOT } from '../support/cli.ts'
import { freePort } from '../support/port.ts'

t.before(build)

/** Runs in the page. Returns what the client read, over the limits of a page of another origin. */
const PROGRAM = `(async () => {
  const { createClient, PetstoreError } = await import('/client.js')
  const url = new URLSearchParams(location.search).get('service')
  const { apiKey } = await createClient({ url }).createAccount({ name: 'A store' })
  const store = createClient({ url, apiKey })
  for (const name of ['Dogs', 'Cats', 'Birds']) await store.createCategory({ name })
  const names = []
  for await (const { name } of store.listCategories({ limit: 2 })) names.push(name)
  const { response } = await store.getCategory(1).withResponse()
  const failure = await store.placeOrder({ petId: 1 }).catch((error) => error)
  const events = []
  for await (const { id } of store.followEvents({ after: 1 })) if (events.push(id) === 2) break
  return {
    names,
    hasETag: response.headers.get('etag') !== null,
    failure: failure instanceof PetstoreError && failure.requestId !== undefined && failure.code,
    events
  }
})()`

t.test('the built client runs in a page of another origin', { skip: withoutBrowser }, async (t) => {
  const file = readFileSync(join(ROOT, 'dist/client/client.js'), 'utf8')
  const pages = createServer(({ url = '' }, response) => {
    const isScript = url === '/client.js'
    response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html')
    response.end(isScript ? file : '<!doctype html>')
  }).listen(await freePort(), '127.0.0.1')
  await once(pages, 'listening')
  t.teardown(() => { pages.closeAllConnections(); pages.close() })
  const origin = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`
  const { port } = await startApp(t, { CORS_ORIGINS: origin })
  const { visit } = await openBrowser(t, origin)
  const { page } = await visit(`/?service=http://127.0.0.1:${port}`)
  t.strictSame(await page.evaluate(PROGRAM), {
    names: ['Dogs', 'Cats', 'Birds'], hasETag: true, failure: 'unknown_pet', events: [2, 3]
  })
})
