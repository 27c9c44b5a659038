import type { Page, Route } from 'playwright-core'
import t from 'tap'
import { startApp } from '../support/app.ts'
import { faultsOf, openBrowser, withoutBrowser } from './browser.ts'
import { newFault } from '../lab/fixture.ts'
import { newCategory } from '../support/fixtures.ts'
import { openReceiver } from '../support/receiver.ts'

t.test('what a client does, on the first page', { skip: withoutBrowser }, async (t) => {
  const service = await startApp(t, { WEBHOOKS_ALLOW_PRIVATE: 'true' })
  const { visit } = await openBrowser(t, `http://127.0.0.1:${service.port}`)
  const ada = await service.openAccount('Store of Ada')

  await t.test('shows the requests of a client as they come, and what was wrong with them', async (t) => {
    const { page, complaints, foreign } = await visit(`/#key=${ada.key}`, { viewport: { width: 390, height: 800 } })
    await page.locator('#journal-switch:enabled').click()
    await page.getByText('Waiting for requests').waitFor()
    await newCategory(ada)
    await ada.post('/pets', { name: '<b>Rex</b>' }, { 'petstore-run': 'my test' })
    await ada.get('/pets/99')
    await newFault(ada, { operation: 'listPets', effect: { type: 'refuse', status: 503 } })
    await ada.get('/pets?limit=3')
    const requests = page.locator('#journal li')
    await requests.nth(3).waitFor()
    t.match((await requests.allInnerTexts()).map((text) => text.replace(/\s+/g, ' ').slice(9)), [
      /^GET \/pets\?limit=3: 503, refused .*injected_fault · fault \d+$/,
      /^GET \/pets\/99: 404 pet_not_found · Your store has no pet with this id\.$/,
      /^POST \/pets: 400 validation_failed · \/body\/categoryId: required · run my test$/,
      /^POST \/categories: 201/
    ], 'newest first, and none of this page')
    t.match(await page.locator('#journal-hint').innerText(), 'Leaves out this page’s requests.')
    await page.locator('#journal-news', { hasText: /503, refused injected_fault · fault \d+$/ })
      .waitFor({ state: 'attached' })
    t.equal(await page.locator('#journal-news').getAttribute('role'), 'status', 'screen readers hear of it')
    for (const [width, colorScheme] of [[360, 'dark'], [1280, 'light']] as const) {
      await page.setViewportSize({ width, height: 800 })
      await page.emulateMedia({ colorScheme })
      t.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), `${width} px are wide enough`)
      t.same(await faultsOf(page), [], `${width} ${colorScheme}`)
    }
    if (process.env['PICTURES'] !== undefined) await page.screenshot({ path: `${process.env['PICTURES']}/390.png`, fullPage: true })
    await page.locator('#journal-switch').click()
    await page.locator('#journal-switch[aria-checked="false"]').waitFor()
    t.equal((await ada.get('/lab/journal')).status, 404)
    t.equal(await requests.count(), 0)
    t.same(complaints.filter((text) => !/404/.test(text)), [])
    t.same(foreign, [])
  })

  await t.test('a key that may only read follows the journal, and does not switch it', async (t) => {
    await ada.request('PUT', '/lab/journal', { body: { keep: 10 } })
    const { body: { apiKey } } = await ada.post('/account/keys', { readOnly: true })
    const { page } = await visit(`/#key=${apiKey}`)
    await page.locator('#journal-switch[aria-checked="true"]:disabled').waitFor()
    await ada.get('/categories')
    await page.locator('#journal').getByText('GET /categories: 200').waitFor()
    t.equal((await ada.get('/lab/journal')).status, 200)
  })

  await t.test('screen readers hear of many requests once', async (t) => {
    const cleo = await service.openAccount('Store of Cleo')
    const { page } = await visit('/')
    await page.clock.install()
    await page.evaluate(`location.hash = 'key=${cleo.key}'`)
    await page.locator('#journal-switch:enabled').click()
    await page.getByText('Waiting for requests').waitFor()
    await page.clock.pauseAt(Date.now() + 10_000)
    await page.evaluate(`{
      window.heard = []
      const news = document.getElementById('journal-news')
      new MutationObserver(() => { window.heard.push(news.textContent) }).observe(news, { childList: true })
    }`)
    const rounds = [[3, /^3 requests\. The last: [\d:]+ GET \/pets: 200/], [1, /^[\d:]+ GET \/pets: 200/]] as const
    for (const [times, heard] of rounds) {
      const before = await page.locator('#journal li').count()
      for (let i = 0; i < times; i++) await cleo.get('/pets')
      await page.locator(`#journal li:nth-child(${before + times})`).waitFor()
      await page.clock.runFor(5_000)
      t.match(await page.evaluate('window.heard.splice(0)'), [heard])
    }
  })

  await t.test('sends an event to webhooks that are created while the page is open', async (t) => {
    const bob = await service.openAccount('Store of Bob')
    const receiver = await openReceiver(t)
    await newCategory(bob)
    const { page } = await visit(`/#key=${bob.key}`)
    const button = page.locator('#events .resend')
    await button.click()
    await page.locator('#events .error').getByText('Your store has no enabled webhook.').waitFor()
    await bob.post('/webhooks', { url: receiver.url })
    const release = await hold(page, '**/resend')
    await button.focus()
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Resending event 1 to webhooks', disabled: true }).waitFor()
    t.equal(await page.locator('#events .error').count(), 0)
    t.equal(await page.evaluate('document.activeElement.dataset.event'), '1', 'it keeps the focus')
    await page.keyboard.press('Enter')
    t.equal(release(), 1, 'one request')
    await page.locator('#events .result').getByText('Queued for 1 of 1 webhooks.').waitFor()
    t.equal(await page.locator('#resend-status').innerText(), 'Event 1: Queued for 1 of 1 webhooks.')
    await page.getByRole('button', { name: 'Resend event 1 to webhooks', disabled: false }).waitFor()
    t.equal(receiver.received.length, 0, 'this service does not deliver')
  })

  await t.test('nothing of a former store stays after the store of a link is opened', async (t) => {
    const [dan, eve] = [await service.openAccount('Store of Dan'), await service.openAccount('Store of Eve')]
    const { page } = await visit(`/#key=${dan.key}`)
    const open = async (key: string): Promise<void> => {
      await page.evaluate(`location.hash = 'key=${key}'`)
      await page.getByRole('button', { name: 'Open the other store' }).click()
    }
    await page.locator('#journal-switch:enabled').click()
    await page.locator('#fill:enabled').click()
    await page.getByText('Added 5 pets').waitFor()
    await page.locator('#message-form button').click()
    await page.locator('#lab-snapshot').click()
    await page.getByText('Took snapshot').waitFor()
    await dan.get('/pets')
    const things = '#messages li, #sent:not([hidden]), #sent-list li, #lab-log li, #journal li, .answer:not([hidden])'
    for (const thing of ['#messages li', '#sent-list li', '#lab-log li', '#journal li']) {
      await page.locator(thing).first().waitFor({ state: 'attached' })
    }
    await open(eve.key!)
    await page.locator('#present-name').getByText('Store of Eve').waitFor()
    await page.locator('#shelf').getByText('No pets yet.').waitFor()
    t.equal(await page.locator(things).count(), 0)
    t.equal(await page.locator('#glance-status').innerText(), '')

    // A response that comes after the other store was opened.
    const release = await hold(page, '**/messages')
    await page.locator('#message-form button').click()
    await page.locator('#message-form[aria-busy]').waitFor()
    await page.locator('#back').click()
    await page.locator('#present-name').getByText('Store of Dan').waitFor()
    t.equal(release(), 1)
    await page.locator('#message-form:not([aria-busy])').waitFor()
    t.equal((await eve.get('/messages')).body.length, 1)
    t.equal(await page.locator('#messages li, [data-request="message"] .answer:not([hidden])').count(), 0)
  })
})

/** Holds requests until the returned function is called, which returns their number. */
async function hold (page: Page, url: string): Promise<() => number> {
  const held: Route[] = []
  await page.route(url, (route) => { held.push(route) })
  return () => {
    for (const route of held) route.continue().catch(() => { /* The page was closed. */ })
    return held.length
  }
}
