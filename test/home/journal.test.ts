// Only on SQLite: drives the first page in a browser, over HTTP.

import t from 'tap'
import { startApp } from '../support/app.ts'
import { openBrowser, withoutBrowser } from '../support/browser.ts'
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
      /^GET \/pets\/99: 404 .*pet_not_found$/,
      /^POST \/pets: 400 .*\/body\/categoryId: required · run my test$/,
      /^POST \/categories: 201/
    ], 'newest first, and none of this page')
    t.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), 'nothing is wider than the phone')
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

  await t.test('sends an event again to the webhooks of the store', async (t) => {
    const bob = await service.openAccount('Store of Bob')
    const receiver = await openReceiver(t)
    // The event comes before the webhook.
    await newCategory(bob)
    await bob.post('/webhooks', { url: receiver.url })
    const { page } = await visit(`/#key=${bob.key}`)
    await page.getByRole('button', { name: 'Send again event 1 to the webhooks' }).click()
    await page.getByText('Event 1 is sent again to 1 of 1 webhooks.').waitFor()
    t.equal(receiver.received.length, 0, 'this service does not deliver')
  })
})
