import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Locator, Page, Response } from 'playwright-core'
import t, { type Test } from 'tap'
import { openDemo } from '../../src/seed/demo-store.ts'
import { startApp } from '../support/app.ts'
import { openBrowser, withoutBrowser } from './browser.ts'
import { ROOT } from '../support/cli.ts'
import { operationsInOrder } from '../openapi/document.ts'

// Other projects' viewers show the document on a page of another origin, and send its examples.

const PACKAGES = join(ROOT, 'test/tools/node_modules')

/** Operations whose example is a condition that fails, so that the next request still has what it needs. */
const REFUSED = new Set([
  'revokeApiKey', 'deleteAccount', 'deleteFaults', 'deleteJournal', 'deleteRequests', 'putLimits', 'deleteLimits'
])

/** What the demo store does not have: attempts, limits, and in some viewers a first request. */
const MISSING = new Set(['getWebhookAttempt', 'getLimits', 'deleteLimits', 'getRequest'])

/** Takes lines of JSON, which most viewers send in another form. */
const LINES = 'importSnapshot'

/** No viewer waits for fonts or scripts of other hosts. */
const THIS_HOST_ONLY = '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1'

interface ViewedService { document: string, key: string, operations: Operation[] }
interface Operation { id: string, summary: string, tag: string, method: string, path: string }

/** The pages. Each shows the document that its address names. */
const PAGES: Record<string, string> = {
  '/swagger-ui': `<div id="viewer"></div>
    <script src="/swagger-ui-dist/swagger-ui-bundle.js"></script>
    <script>
      const [url, key] = decodeURIComponent(location.hash.slice(1)).split(' ')
      const ui = SwaggerUIBundle({
        url,
        dom_id: '#viewer',
        docExpansion: 'none',
        tryItOutEnabled: true,
        syntaxHighlight: false,
        // Half of the time goes into the tables of responses, which the other viewers show.
        plugins: [() => ({ wrapComponents: { responses: () => () => null } })],
        defaultModelsExpandDepth: -1,
        defaultModelRendering: 'example',
        onComplete: () => ui.preauthorizeApiKey('bearerAuth', key)
      })
    </script>`,
  '/rapidoc': `<script type="module" src="/rapidoc/dist/rapidoc-min.js"></script>
    <rapi-doc render-style="read" allow-spec-file-download="false" load-fonts="false"></rapi-doc>
    <script type="module">
      const [url, key] = decodeURIComponent(location.hash.slice(1)).split(' ')
      const viewer = document.querySelector('rapi-doc')
      viewer.addEventListener('spec-loaded', () => viewer.setApiKey('bearerAuth', key))
      viewer.setAttribute('spec-url', url)
    </script>`,
  '/redoc': `<div id="viewer"></div>
    <script src="/redoc/bundles/redoc.standalone.js"></script>
    <script>
      const [url] = decodeURIComponent(location.hash.slice(1)).split(' ')
      Redoc.init(url, { disableSearch: true }, document.getElementById('viewer'))
    </script>`,
  '/elements': `<script src="/@stoplight/elements/web-components.min.js"></script>
    <script>
      const [url, key] = decodeURIComponent(location.search.slice(1)).split(' ')
      localStorage.setItem('TryIt_securitySchemeValues', JSON.stringify({ bearerAuth: key }))
      document.write('<elements-api router="hash" layout="sidebar" apiDescriptionUrl="' + url + '"></elements-api>')
    </script>`
}

t.test('viewers of the document', { skip: withoutBrowser }, async (t) => {
  const pages = createServer(({ url = '' }, response) => {
    const [path = ''] = url.split('?')
    const page = PAGES[path]
    try {
      response.setHeader('content-type', page === undefined ? 'text/javascript' : 'text/html; charset=utf-8')
      response.end(page === undefined ? readFileSync(join(PACKAGES, path)) : `<!doctype html>${page}`)
    } catch { response.writeHead(404).end() }
  }).listen(0, '127.0.0.1')
  await once(pages, 'listening')
  t.teardown(() => { pages.closeAllConnections(); pages.close() })
  const origin = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`
  const browser = await openBrowser(t, origin, [THIS_HOST_ONLY])

  await t.test('Swagger UI executes every operation', async (t) => {
    const { document, key, operations } = await openStore(t, origin)
    const { page } = await browser.visit(`/swagger-ui#${encodeURIComponent(`${document} ${key}`)}`)
    const statuses: Record<string, number> = {}
    // Every press renders all operations that are open, so one tag and one operation are open at a time.
    for (const tag of new Set(operations.map(({ tag }) => tag))) {
      const toggle = page.locator(`[data-tag="${tag}"] button`)
      await toggle.click()
      for (const { id } of operations.filter((operation) => operation.tag === tag)) {
        const block = page.locator(`[id="operations-${tag}-${id}"]`)
        const summary = block.locator('.opblock-summary-control')
        await summary.click()
        // The button is there before the parameters, and fails without them.
        await block.locator('tr[data-param-name], textarea').first().waitFor()
        statuses[id] = (await press(page, document, block.locator('.execute'))).status()
        await summary.click()
      }
      await toggle.click()
    }
    t.strictSame(problemsOf(statuses, operations), [])
  })

  await t.test('RapiDoc executes every operation', async (t) => {
    const { document, key, operations } = await openStore(t, origin)
    const { page } = await browser.visit(`/rapidoc#${encodeURIComponent(`${document} ${key}`)}`)
    const buttons = page.locator('[part~="btn-try"]')
    await buttons.nth(operations.length - 1).waitFor({ state: 'attached' })
    const statuses: Record<string, number> = {}
    for (const button of await buttons.all()) {
      const response = await press(page, document, button)
      statuses[operationOf(operations, response)] = response.status()
    }
    t.strictSame(problemsOf(statuses, operations), [])
  })

  await t.test('Redoc shows every operation', async (t) => {
    const { document, operations } = await openStore(t, origin)
    const { page } = await browser.visit(`/redoc#${encodeURIComponent(document)}`)
    await page.locator('[id="operation/deleteAccount"]').waitFor({ state: 'attached' })
    for (const { id, summary } of operations) {
      t.match(await page.locator(`[id="operation/${id}"]`).innerText(), summary, id)
    }
  })

  await t.test('Stoplight Elements executes every operation', async (t) => {
    const { document, key, operations } = await openStore(t, origin)
    const { page } = await browser.visit(`/elements?${encodeURIComponent(`${document} ${key}`)}`)
    const statuses: Record<string, number> = {}
    for (const { id, summary } of operations) {
      await page.evaluate(`location.hash = '/operations/${id}'`)
      await page.getByRole('heading', { name: summary, exact: true }).waitFor()
      const button = page.getByRole('button', { name: 'Send API Request', disabled: false })
      await button.waitFor()
      // The viewer fills in required parameters and bodies only, and keeps what was entered for the next operation.
      const condition = page.getByLabel('If-Match', { exact: true })
      if (await condition.isVisible()) await condition.fill(REFUSED.has(id) ? '"0"' : '')
      statuses[id] = (await press(page, document, button)).status()
    }
    t.strictSame(problemsOf(statuses, operations), [])
  })
})

/** Starts a service with a demo store, which pages of the viewers may call. */
async function openStore (t: Test, origin: string): Promise<ViewedService> {
  const { app, port, nobody } = await startApp(t, { CORS_ORIGINS: origin })
  const greeting = await openDemo(app)
  const [key = ''] = /psk_\w+/.exec(greeting!('')) ?? []
  const operations = operationsInOrder((await nobody.get('/openapi.json')).body)
    .map(({ path, method, operation: { operationId: id, summary = '', tags: [tag = ''] = [] } }) =>
      ({ id, summary, tag, method: method.toUpperCase(), path }))
  return { document: `http://127.0.0.1:${port}/openapi.json`, key, operations }
}

/**
 * Presses a button that sends a request, and waits for the answer. The event goes to the button itself: a viewer moves
 * it while it fills in the parameters of an operation, some without end, and a click on its old place is lost.
 */
async function press (page: Page, document: string, button: Locator): Promise<Response> {
  const { origin } = new URL(document)
  const isAnswer = (response: Response): boolean =>
    response.url().startsWith(origin) && response.request().method() !== 'OPTIONS'
  const [response] = await Promise.all([page.waitForResponse(isAnswer), button.dispatchEvent('click')])
  return response
}

/** Returns the id of the operation that answered. Viewers have orders of their own. */
function operationOf (operations: Operation[], response: Response): string {
  const { pathname } = new URL(response.url())
  const found = operations.find(({ method, path }) => method === response.request().method() &&
    new RegExp(`^${path.replace(/\{\w+\}/, '[^/]+')}$`).test(pathname))
  return found?.id ?? pathname
}

/** Returns the operations that were not called, or did not answer as their example says. */
function problemsOf (statuses: Record<string, number>, operations: Operation[]): string[] {
  return operations.flatMap(({ id }) => {
    const status = statuses[id]
    if (id === LINES || (MISSING.has(id) && (status === undefined || status === 404))) return []
    if (status === undefined) return `${id} was not called`
    const isRight = REFUSED.has(id) ? status === 412 : status >= 200 && status < 400
    return isRight ? [] : `${id} was answered ${status}`
  })
}
