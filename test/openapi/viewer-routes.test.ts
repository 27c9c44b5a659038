import type { Page } from 'playwright-core'
import t from 'tap'
import type { Document } from '../../src/openapi/document.ts'
import { startApp } from '../support/app.ts'
import { openBrowser, withoutBrowser } from '../support/browser.ts'

/** Scalar's button on each operation. */
const TEST_BUTTON = '.show-api-client-button'

// Loading the page takes a browser most of the time of these tests, so that they share one page.
t.test('/docs in a browser, behind a prefix and a proxy', { skip: withoutBrowser }, async (t) => {
  const { app, port } = await startApp(t, { BASE_PATH: '/v1', PUBLIC_URL: 'https://pets.example' })
  const operations = Object.values((app.swagger() as unknown as Document).paths)
    .flatMap((methods) => Object.values(methods))
    .map(({ operationId }) => operationId)
  const origin = `http://127.0.0.1:${port}`
  const { visit } = await openBrowser(t, origin)
  const { page, complaints, foreign } = await visit('/v1')
  await page.locator('#open-form button:enabled').click()
  await page.locator('#new-key').waitFor()
  await page.getByRole('link', { name: 'Reference', exact: true }).click()
  await page.locator(TEST_BUTTON).nth(operations.length - 1).waitFor({ state: 'attached' })

  await t.test('the sidebar lists the operations in their groups', async (t) => {
    const [sidebar = ''] = await page.locator('aside, nav').allInnerTexts()
    const lines = sidebar.split('\n').map((line) => line.trim())
    const order = [
      'Pets',
      'Animals',
      'List pets',
      'Categories',
      'Store',
      'Orders',
      'Place an order',
      'Inventory',
      'Platform',
      'Messages',
      'Accounts'
    ]
    t.same(order.filter((name) => !lines.includes(name)), [], 'all are there')
    t.same([...order].sort((a, b) => lines.indexOf(a) - lines.indexOf(b)), order, 'in this order')
  })

  await t.test('badges mark beta, experimental and deprecated operations', async (t) => {
    t.match(await textOf(page, 'cancelOrder'), /\bbeta\b/)
    t.match(await textOf(page, 'updateInventory'), /\bexperimental\b/)
    t.match(await textOf(page, 'getPet'), /\bDeprecated\b.*\bends 2030-12-05\b.*From 2030-12-05 on/s)
    t.notMatch(await textOf(page, 'createPet'), /\b(beta|experimental|Deprecated)\b/)
  })

  await t.test('every operation can be tried, but GET /store/orders', async (t) => {
    for (const operation of operations) {
      t.equal(await sectionOf(page, operation).locator(TEST_BUTTON).isVisible(), operation !== 'listOrders', operation)
    }
  })

  await t.test('a try sends its request to this service, with the key of the first page', async (t) => {
    for (const [operation, path, status] of [
      ['getAccount', '/v1/account', 200],
      ['createAccount', '/v1/accounts', 201]
    ] as const) {
      await sectionOf(page, operation).locator(TEST_BUTTON).click()
      const answered = page.waitForResponse((response) => new URL(response.url()).pathname === path)
      const client = page.getByRole('dialog', { name: 'API Client' })
      await client.getByRole('button', { name: 'Send', exact: false }).first().click()
      const response = await answered
      t.equal(new URL(response.url()).origin, origin)
      t.equal(response.status(), status, operation)
      await client.getByText(String(status)).first().waitFor()

      await page.keyboard.press('Control+b')
      await page.waitForTimeout(500)
      const others = client.getByText('Orders', { exact: true }).filter({ visible: true })
      t.equal(await others.count(), 0, 'a list of the other operations stays hidden')
      t.equal(await client.locator('.scalar-sidebar-toggle').isVisible(), false)
      await page.keyboard.press('Escape')
      await client.waitFor({ state: 'hidden' })
    }
  })

  await t.test('samples are in curl, JavaScript and Python, and in nothing else', async (t) => {
    await page.goto(`${origin}/v1/docs#tag/animals/createPet`)
    const section = sectionOf(page, 'createPet')
    await section.getByText('curl https://pets.example/v1/pets').waitFor()
    await section.getByRole('button', { name: 'curl' }).click()
    t.same(await page.getByRole('option').allInnerTexts(), ['curl', 'JavaScript', 'Python'])
    await page.getByRole('option', { name: 'Python' }).click()
    await section.getByText('from urllib.request').waitFor()
  })

  await t.test('the page calls no other service, and shows no link or text of its maker', async (t) => {
    t.same(foreign, [])
    t.same(complaints, [])
    t.equal(await page.locator('a[href*="scalar.com"]').filter({ visible: true }).count(), 0)
    t.equal(await page.getByText(/Powered by|Ask AI|Generate SDK/i).filter({ visible: true }).count(), 0)
  })
})

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
    for (const path of ['/docs', '/docs/start.js', '/docs/viewer.js']) {
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
})

/** Where the page shows an operation. */
function sectionOf (page: Page, operationId: string) {
  return page.locator(`[id$="/${operationId}"]`).first()
}

async function textOf (page: Page, operationId: string): Promise<string> {
  return await sectionOf(page, operationId).innerText()
}
