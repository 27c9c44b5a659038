import { existsSync } from 'node:fs'
import { chromium, type Page } from 'playwright-core'
import t from 'tap'
import type { Document } from '../../src/openapi/document.ts'
import { startApp } from '../support/app.ts'

/** Debian's package; elsewhere, or under another name, these tests are skipped. */
const CHROMIUM = process.env['CHROMIUM'] ?? '/usr/bin/chromium'

/** Scalar's button on each operation. */
const TEST_BUTTON = '.show-api-client-button'

const missing = existsSync(CHROMIUM) ? false : `there is no ${CHROMIUM} to open /docs with (Debian: apt-get install chromium)`

t.test('/docs in a browser', { skip: process.env['CI'] === 'true' ? false : missing }, async (t) => {
  const { app, port } = await startApp(t)
  const operations = Object.values((app.swagger() as unknown as Document).paths).flatMap((methods) => Object.values(methods)).map(({ operationId }) => operationId)
  // As root, Chromium has no sandbox.
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] })
  t.teardown(async () => { await browser.close() })
  const page = await browser.newPage({ viewport: { width: 1400, height: 900 } })
  const complaints: string[] = []
  page.on('console', (message) => { if (message.type() === 'error') complaints.push(message.text()) })
  page.on('pageerror', ({ message }) => complaints.push(message))
  const origin = `http://127.0.0.1:${port}`
  const foreign: string[] = []
  page.on('request', (request) => { if (!request.url().startsWith(origin) && !request.url().startsWith('data:')) foreign.push(request.url()) })
  await page.goto(`${origin}/docs`)
  await page.locator(TEST_BUTTON).nth(operations.length - 1).waitFor({ state: 'attached', timeout: 60_000 })

  await t.test('the operations stand in their groups', async (t) => {
    const [sidebar = ''] = await page.locator('aside, nav').allInnerTexts()
    const lines = sidebar.split('\n').map((line) => line.trim())
    const order = ['Pets', 'Animals', 'List pets', 'Categories', 'Store', 'Orders', 'Place an order', 'Inventory', 'Platform', 'Messages', 'Accounts']
    t.same(order.filter((name) => !lines.includes(name)), [], 'all are there')
    t.same([...order].sort((a, b) => lines.indexOf(a) - lines.indexOf(b)), order, 'in this order')
  })

  await t.test('badges tell what is beta, experimental and deprecated', async (t) => {
    t.match(await textOf(page, 'cancelOrder'), /\bbeta\b/)
    t.match(await textOf(page, 'updateInventory'), /\bexperimental\b/)
    t.match(await textOf(page, 'getPet'), /\bDeprecated\b/)
    t.notMatch(await textOf(page, 'createPet'), /\b(beta|experimental|Deprecated)\b/)
  })

  await t.test('every operation can be tried, but GET /store/orders', async (t) => {
    for (const operation of operations) {
      t.equal(await sectionOf(page, operation).locator(TEST_BUTTON).isVisible(), operation !== 'listOrders', operation)
    }
  })

  await t.test('trying an operation sends its request, and leads to no other', async (t) => {
    const answered = page.waitForResponse((response) => response.url() === `${origin}/accounts`)
    await sectionOf(page, 'createAccount').locator(TEST_BUTTON).click()
    const client = page.locator('.scalar-client')
    await client.getByRole('button', { name: 'Send', exact: false }).first().click()
    const response = await answered
    t.equal(response.status(), 201)
    t.match(await response.json(), { id: Number, apiKey: /^psk_/ })
    await client.getByText('201').first().waitFor()

    await page.keyboard.press('Control+b')
    await page.waitForTimeout(500)
    t.equal(await client.getByText('Orders', { exact: true }).filter({ visible: true }).count(), 0, 'a list of the others stays away')
    t.equal(await client.locator('.scalar-sidebar-toggle').isVisible(), false)
  })

  await t.test('it talks to nobody else, and nothing of its maker is to be seen', async (t) => {
    t.same(foreign, [])
    t.same(complaints, [])
    t.equal(await page.locator('a[href*="scalar.com"]').filter({ visible: true }).count(), 0)
    t.equal(await page.getByText(/Powered by|Ask AI|Generate SDK/i).filter({ visible: true }).count(), 0)
  })
})

t.test('/docs and its programs', async (t) => {
  const { nobody } = await startApp(t)

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
    for (const path of ['/docs', '/docs/start.js', '/docs/viewer.js']) {
      const { status, headers } = await nobody.get(path)
      t.equal(status, 200)
      t.equal((await nobody.get(path, { 'if-none-match': String(headers.etag) })).status, 304, path)
    }
    t.equal((await nobody.get('/docs/other.js')).status, 404)
  })
})

/** Where the page shows an operation. */
function sectionOf (page: Page, operationId: string) {
  return page.locator(`[id$="/${operationId}"]`).first()
}

async function textOf (page: Page, operationId: string): Promise<string> {
  return await sectionOf(page, operationId).innerText()
}
