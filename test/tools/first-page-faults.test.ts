import t from 'tap'
import type { Page } from 'playwright-core'
import { startApp, type Client } from '../support/app.ts'
import { openBrowser, withoutBrowser } from './browser.ts'
import { count, newOrder, newPet } from '../support/fixtures.ts'

/** Limits waits for what a page does by itself, far beyond what a slow machine needs. */
const WAIT = { timeout: 60_000 }

t.test('the first page when something goes wrong or away', { skip: withoutBrowser }, async (t) => {
  const service = await startApp(t)
  const { visit } = await openBrowser(t, `http://127.0.0.1:${service.port}`)

  /** Opens the page in the store of a client, and prepares it before. */
  async function storeOf (client: Client, prepare: (page: Page) => Promise<unknown> = async () => {}): Promise<Page> {
    const { page } = await visit('/')
    await prepare(page)
    await page.getByText('I already have an API key').click()
    await page.locator('#key-text').fill(client.key!)
    await page.keyboard.press('Enter')
    await page.locator('#feed-state[data-state="live"]').waitFor(WAIT)
    return page
  }

  async function figure (page: Page, name: string, value: string): Promise<void> {
    await page.locator(`#count-${name}`).getByText(value, { exact: true }).waitFor(WAIT)
  }

  await t.test('a stream that falls silent is opened again', async (t) => {
    const ada = await service.openAccount()
    const page = await storeOf(ada, async (page) => {
      await page.clock.install()
      await page.reload()
    })
    const again = page.waitForRequest(/\/events$/, WAIT)
    // The service sends a comment every 15 s.
    await page.clock.fastForward(20_000)
    await page.waitForTimeout(300)
    t.equal(await page.locator('#feed-state').getAttribute('data-state'), 'live', 'not yet')
    await page.clock.fastForward(30_000)
    t.ok(await again)
    await page.locator('#feed-state[data-state="live"]').waitFor(WAIT)
    await newPet(ada)
    await figure(page, 'available', '1')
  })

  await t.test('a key of the address that cannot be checked is tried again by the page and by a reload', async (t) => {
    const ada = await service.openAccount('Store of Ada')
    const { page } = await visit('/')
    await page.clock.install()
    let isDown = true
    await page.route('**/account', async (route) => isDown ? await route.abort() : await route.continue())
    await page.evaluate(`location.hash = 'key=${ada.key}'`)
    await page.getByText('The page tries your key again in a few seconds.').waitFor(WAIT)
    await page.reload()
    await page.getByText('The page tries your key again in a few seconds.').waitFor(WAIT)
    isDown = false
    await page.clock.fastForward(6_000)
    await page.locator('#present-name').getByText('Store of Ada').waitFor(WAIT)
    t.equal(await page.locator('#open-error').innerText(), '')
  })

  await t.test('a stream that is refused with 429 or 503 is tried again, and the session goes on', async (t) => {
    const ada = await service.openAccount()
    const refusals = [429, 503]
    let reads = 0
    const page = await storeOf(ada, async (page) => {
      page.on('request', (request) => { if (request.url().includes('/pets?')) reads++ })
      await page.route('**/events', async (route) => {
        const status = refusals.shift()
        if (status === undefined) return await route.continue()
        const body = JSON.stringify({ code: 'rate_limited', message: 'Too many requests.', status })
        await route.fulfill({ status, contentType: 'application/json', body })
      })
    })
    t.same(refusals, [])
    t.equal(reads, 1, 'the stream goes on, and the store is not read again')
    await newPet(ada)
    await figure(page, 'available', '1')
  })

  await t.test('a step that is refused with 429 shows why, and works later', async (t) => {
    const ada = await service.openAccount()
    await count(ada, await newPet(ada), 2)
    const page = await storeOf(ada)
    const message = 'Too many requests: try again in 7 seconds.'
    await page.route('**/store/orders', async (route) => {
      const body = JSON.stringify({ code: 'rate_limited', message, status: 429 })
      await route.fulfill({ status: 429, contentType: 'application/json', headers: { 'retry-after': '7' }, body })
    })
    await figure(page, 'units', '2')
    await page.locator('#order').click()
    // The answer beside the request contains the message, too.
    const error = page.getByText(message, { exact: true })
    await error.waitFor(WAIT)
    await page.unroute('**/store/orders')
    await page.locator('#order').click()
    await figure(page, 'orders', '1')
    await error.waitFor({ state: 'hidden', ...WAIT })
    t.pass('the order was placed')
  })

  await t.test('a cancelled order returns its units, and a deleted pet leaves with its units', async (t) => {
    const ada = await service.openAccount()
    const [rex, minka] = [await newPet(ada, { name: 'Rex' }), await newPet(ada, { name: 'Minka' })]
    await count(ada, rex, 3)
    await count(ada, minka, 4)
    const order = await newOrder(ada, rex, 3)
    const page = await storeOf(ada)
    for (const [name, value] of [['units', '4'], ['orders', '1'], ['pending', '1']] as const) {
      await figure(page, name, value)
    }
    await ada.delete(`/store/orders/${order}`)
    for (const [name, value] of [['units', '7'], ['orders', '0'], ['pending', '0'], ['available', '2']] as const) {
      await figure(page, name, value)
    }
    await ada.delete(`/pets/${rex}`)
    for (const [name, value] of [['units', '4'], ['available', '1']] as const) await figure(page, name, value)
    await page.locator('#shelf th', { hasText: 'Rex' }).waitFor({ state: 'detached', ...WAIT })
    t.equal(await page.locator('#shelf th').count(), 1)
    t.match(await page.locator('#events').innerText(), /Rex was removed/)
  })
})
