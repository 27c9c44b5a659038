import axe from 'axe-core'
import type { Locator, Page } from 'playwright-core'
import t from 'tap'
import type { Document } from '../../src/openapi/document.ts'
import { startApp } from '../support/app.ts'
import { openBrowser, withoutBrowser } from './browser.ts'

/** Scalar's button on each operation. */
const TEST_BUTTON = '.show-api-client-button'

/** The button with which Scalar opens a list of all operations beside a request. */
const CLIENT_SIDEBAR = '.scalar-sidebar-toggle'

/** Scalar's choice of the document. */
const VERSION_BUTTON = '.document-selector button'

/** The colours that a person sees first, as the browser computes them. */
const LOOK = `(() => {
  const style = (selector) => getComputedStyle(document.querySelector(selector))
  return { paper: style('body').backgroundColor, link: style('nav a').color, name: style('.brand').fontFamily }
})()`

// Loading the page takes a browser most of the time of these tests, so that they share one page, in their order.
t.test('/docs in a browser, behind a prefix and a proxy', { skip: withoutBrowser }, async (t) => {
  const { app, port } = await startApp(t, { BASE_PATH: '/v1', PUBLIC_URL: 'https://pets.example' })
  const document = app.swagger() as unknown as Document
  const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods))
  const ids = operations.map(({ operationId }) => operationId)
  const origin = `http://127.0.0.1:${port}`
  const { visit } = await openBrowser(t, origin)
  const { page, complaints, foreign } = await visit('/v1')
  await page.locator('#open-form button:enabled').click()
  await page.locator('#new-key:focus').waitFor()
  const key = await page.locator('#new-key-text').innerText()
  const lookOfFirstPage = await page.evaluate(LOOK)
  await page.getByRole('link', { name: 'Reference', exact: true }).click()
  await untilLoaded(page)

  await t.test('the keyboard reaches the reference, a request and the versions', async (t) => {
    const focused: string[] = []
    for (let press = 0; press < 6; press++) {
      await page.keyboard.press('Tab')
      focused.push(await page.evaluate<string>('document.activeElement.innerText || document.activeElement.id'))
    }
    const links = ['Home', 'OpenAPI JSON', 'OpenAPI YAML']
    t.strictSame(focused, ['Skip to the reference', 'Petstore', ...links, 'OpenAPI 3.0.3'])
    await page.keyboard.press('Enter')
    t.same(await optionsOf(page), ['OpenAPI 3.0.3', 'OpenAPI 3.1', 'OpenAPI 3.2'])
    await page.keyboard.press('Escape')
    await page.getByRole('option').first().waitFor({ state: 'detached' })
    await page.locator('.skip').focus()
    await page.keyboard.press('Enter')
    t.equal(await page.evaluate<string>('document.activeElement.id'), 'app')

    await (await show(page, 'listPets')).locator(TEST_BUTTON).focus()
    await page.keyboard.press('Enter')
    const client = page.getByRole('dialog', { name: 'API Client' })
    await client.waitFor()
    await page.keyboard.press('Escape')
    await client.waitFor({ state: 'hidden' })
  })

  await t.test('the page has the name and the look of the first page, in light and dark', async (t) => {
    t.equal(await page.locator('.brand').innerText(), 'Petstore')
    t.same(await page.evaluate(LOOK), lookOfFirstPage)
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      const { paper, link } = await page.evaluate<Record<string, string>>(LOOK)
      t.equal(await computed(page, '.scalar-app', 'background-color'), paper, `${colorScheme} paper`)
      t.equal(await computed(page, TEST_BUTTON, 'background-color'), link, `${colorScheme} accent`)
      t.same(await paleTextsOf(page), [], `${colorScheme} contrast`)
    }
    await page.emulateMedia({ colorScheme: 'light' })
  })

  await t.test('the sidebar lists the operations in their groups', async (t) => {
    const lines = await sidebarOf(page)
    const order = [
      'Pets',
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

  // The viewer renders a section when it comes near.
  for (const id of ids) await show(page, id)

  await t.test('badges mark beta, experimental and deprecated operations', async (t) => {
    t.match(await textOf(page, 'cancelOrder'), /\bbeta\b/)
    t.match(await textOf(page, 'updateInventory'), /\bexperimental\b/)
    t.match(await textOf(page, 'getPet'), /\bDeprecated\b.*\bends 2030-12-05\b.*From 2030-12-05 on/s)
    t.notMatch(await textOf(page, 'createPet'), /\b(beta|experimental|Deprecated)\b/)
  })

  await t.test('each body is described once', async (t) => {
    const { schemas } = document.components
    const bodies = operations.flatMap(({ operationId, requestBody }) => {
      const name = requestBody?.content['application/json']?.schema?.$ref?.split('/').at(-1)
      const description = name === undefined ? undefined : schemas[name]?.description
      return description === undefined ? [] : { operationId, description: description.replaceAll('`', '') }
    })
    t.ok(bodies.length > 8)
    for (const { operationId, description } of bodies) {
      const text = (await textOf(page, operationId)).replaceAll(/\s+/g, ' ')
      t.equal(text.split(description.split('. ')[0]!).length - 1, 1, `${operationId}: ${description}`)
    }
  })

  await t.test('every operation can be tried, but GET /store/orders, which says so', async (t) => {
    for (const id of ids) {
      const isTried = id !== 'listOrders'
      t.equal(await sectionOf(page, id).locator(TEST_BUTTON).isVisible(), isTried, id)
      const sentence = sectionOf(page, id).getByText('Interactive testing is turned off for this operation')
      t.equal(await sentence.count(), isTried ? 0 : 1, id)
    }
  })

  await t.test('a try sends its request to this service, with the key of the first page', async (t) => {
    const client = page.getByRole('dialog', { name: 'API Client' })
    for (const [operation, method, path, status] of [
      ['listPets', 'GET', '/v1/pets', 200],
      ['createAccount', 'POST', '/v1/accounts', 201]
    ] as const) {
      await (await show(page, operation)).locator(TEST_BUTTON).click()
      const answered = page.waitForResponse((response) =>
        response.request().method() === method && new URL(response.url()).pathname === path)
      await client.getByRole('button', { name: 'Send', exact: false }).first().click()
      const response = await answered
      t.equal(response.url(), `${origin}${path}`, 'no optional parameter is sent')
      t.notOk(await response.request().headerValue('idempotency-key'))
      t.notOk(await response.request().headerValue('if-none-match'))
      t.equal(response.status(), status, operation)
      await client.getByText(String(status)).first().waitFor()

      t.equal(await client.locator(CLIENT_SIDEBAR).isVisible(), false, 'no list of the other operations')
      await page.keyboard.press('Control+b')
      await nextFrames(page)
      t.equal(await client.locator(CLIENT_SIDEBAR).isVisible(), false, 'nor after its shortcut')
      const others = client.getByText('Orders', { exact: true }).filter({ visible: true })
      t.equal(await others.count(), 0)
      await page.keyboard.press('Escape')
      await client.waitFor({ state: 'hidden' })
    }
  })

  await t.test('samples are in curl, JavaScript and Python, with the key that was entered', async (t) => {
    const section = await show(page, 'createPet')
    await section.getByText('curl https://pets.example/v1/pets').first().waitFor()
    await section.getByText(`Authorization: Bearer ${key}'`).first().waitFor()
    t.notMatch(await textOf(page, 'createAccount'), key, 'an operation without authentication has no key')
    await section.getByRole('button', { name: 'curl' }).click()
    t.same(await optionsOf(page), ['curl', 'JavaScript', 'Python'])
    await page.getByRole('option', { name: 'Python' }).click()
    await section.getByText('from urllib.request').first().waitFor()
    await section.getByText(`Bearer ${key}"`).first().waitFor()

    const field = page.locator('.scalar-reference-intro-auth input')
    await field.fill('psk_another')
    await field.press('Tab')
    await (await show(page, 'createPet')).getByText('Bearer psk_another"').first().waitFor({ state: 'attached' })
    await page.getByText(key).first().waitFor({ state: 'detached' })
    // The first page finds the key there.
    t.equal(await page.evaluate<string>("sessionStorage.getItem('petstore key /v1/')"), 'psk_another')
  })

  await t.test('a version that was chosen stays after a reload', async (t) => {
    t.notOk((await sidebarOf(page)).includes('Receive pet.created'), 'webhooks came with 3.1')
    await page.locator(VERSION_BUTTON).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('option').first().waitFor()
    for (const press of ['ArrowDown', 'ArrowDown', 'Enter']) await page.keyboard.press(press)
    await page.locator('.t-doc__sidebar').getByText('Receive pet.created').first().waitFor()
    await page.reload()
    await untilLoaded(page)
    await page.locator(VERSION_BUTTON).getByText('OpenAPI 3.2').waitFor()
    const lines = await sidebarOf(page)
    for (const name of ['Pets', 'Store', 'Platform', 'List pets']) t.ok(lines.includes(name), name)
    t.equal(await (await show(page, 'listOrders')).locator(TEST_BUTTON).isVisible(), false)
  })

  await t.test('a downloaded document has no samples, and no key', async (t) => {
    const downloaded = page.waitForEvent('download')
    await page.getByText('Download OpenAPI Document').click()
    const file = await downloaded
    t.equal(file.suggestedFilename(), 'openapi-3-2.json')
    const chunks = []
    for await (const chunk of await file.createReadStream()) chunks.push(chunk)
    const text = Buffer.concat(chunks).toString()
    t.equal(JSON.parse(text).openapi, '3.2.0')
    t.notMatch(text, /x-codeSamples/)
  })

  await t.test('the page calls no other service, and shows no link or text of its maker', async (t) => {
    t.equal(await page.locator('a[href*="scalar.com"]').filter({ visible: true }).count(), 0)
    t.equal(await page.getByText(/Powered by|Ask AI|Generate SDK/i).filter({ visible: true }).count(), 0)
    t.same(foreign, [])
    t.same(complaints, [])
  })

  await t.test('a link leads home', async (t) => {
    await page.getByRole('link', { name: 'Home', exact: true }).click()
    await page.getByRole('heading', { name: 'Break your client here, not in production' }).waitFor()
    t.equal(page.url(), `${origin}/v1/`)
  })

  await t.test('a phone shows all of it', async (t) => {
    // An address of the time when the page showed one version.
    const { page, complaints } = await visit('/v1/docs#tag/animals/createPet',
      { viewport: { width: 360, height: 740 }, hasTouch: true })
    await untilLoaded(page)
    // The viewer adds the first version, and then the section that is visible.
    await page.waitForURL(/docs#openapi-3-0\//)
    await sectionOf(page, 'createPet').locator(TEST_BUTTON).waitFor()
    t.equal(await page.evaluate<number>('document.documentElement.scrollWidth'), 360, 'nothing is wider')
    t.ok(await page.getByRole('link', { name: 'Home', exact: true }).isVisible())
    await page.getByRole('button', { name: 'Open Menu' }).tap()
    await page.locator(VERSION_BUTTON).filter({ visible: true }).tap()
    await page.getByRole('option', { name: 'OpenAPI 3.1' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByText('Place an order', { exact: true }).filter({ visible: true }).tap()
    await sectionOf(page, 'placeOrder').getByText('curl https://pets.example/v1/store/orders').waitFor()
    await sectionOf(page, 'placeOrder').locator(TEST_BUTTON).tap()
    const send = page.getByRole('dialog', { name: 'API Client' }).getByRole('button', { name: 'Send' }).first()
    await send.waitFor()
    t.equal(await page.evaluate<number>('document.documentElement.scrollWidth'), 360)
    t.same(complaints, [])
  })

  await t.test('the name of the page is painted before its program has arrived', async (t) => {
    const { page } = await visit('/livez')
    await page.route('**/docs/viewer.js', () => {})
    await page.goto(`${origin}/v1/docs`, { waitUntil: 'commit' })
    await page.locator('.brand').waitFor()
    // The page's policy forbids to evaluate text, except at the first attempt.
    await page.waitForFunction(() => performance.getEntriesByName('first-contentful-paint').length === 1)
    t.match(await page.locator('#app').innerText(), 'Loading the reference')
  })
})

/** Waits until the viewer has rendered its first operation. */
async function untilLoaded (page: Page): Promise<void> {
  await page.locator(TEST_BUTTON).first().waitFor({ state: 'attached' })
}

/** Time after which the viewer may have scrolled away, to the section of the address: it does when it has loaded. */
const SCROLL_AGAIN_MS = 1_000

/** Scrolls to an operation until the viewer has rendered its section. */
async function show (page: Page, operationId: string): Promise<Locator> {
  const section = sectionOf(page, operationId)
  const button = section.locator(TEST_BUTTON)
  while (await button.count() === 0) {
    await section.evaluate((element: any) => element.scrollIntoView())
    await button.waitFor({ state: 'attached', timeout: SCROLL_AGAIN_MS }).catch(() => {})
  }
  return section
}

/** Waits until the page has painted what it changed. */
async function nextFrames (page: Page): Promise<void> {
  await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))')
}

/** Returns the texts whose contrast is below 4.5, or below 3 where they are large. */
async function paleTextsOf (page: Page): Promise<string[]> {
  await page.evaluate(axe.source)
  const { violations } = await page.evaluate<axe.AxeResults>("axe.run({ runOnly: ['color-contrast'] })")
  return violations.flatMap(({ nodes }) => nodes.map(({ html, failureSummary }) => `${html} ${failureSummary ?? ''}`))
}

async function computed (page: Page, selector: string, property: string): Promise<string> {
  return await page.locator(selector).first().evaluate(
    (element, name) => (globalThis as any).getComputedStyle(element).getPropertyValue(name), property)
}

/** The choices of the list that was just opened. */
async function optionsOf (page: Page): Promise<string[]> {
  await page.getByRole('option').first().waitFor()
  return await page.getByRole('option').allInnerTexts()
}

async function sidebarOf (page: Page): Promise<string[]> {
  return (await page.locator('.t-doc__sidebar').first().innerText()).split('\n').map((line) => line.trim())
}

/** Where the page shows an operation. */
function sectionOf (page: Page, operationId: string): Locator {
  return page.locator(`[id$="/${operationId}"]`).first()
}

async function textOf (page: Page, operationId: string): Promise<string> {
  return await sectionOf(page, operationId).innerText()
}
