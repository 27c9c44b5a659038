// Only on SQLite: drives the first page in a browser, over HTTP.

import t from 'tap'
import { startApp } from '../support/app.ts'
import { openBrowser, withoutBrowser } from '../support/browser.ts'

t.test('the panel of the lab in a browser', { skip: withoutBrowser }, async (t) => {
  const service = await startApp(t)
  const { visit } = await openBrowser(t, `http://127.0.0.1:${service.port}`)
  const { page, complaints, foreign } = await visit('/', { viewport: { width: 360, height: 800 } })
  await page.locator('#open-form fieldset:enabled').waitFor()
  await page.locator('#open-form button').first().click()
  await page.locator('#fill:enabled').click()
  await page.getByText('Added 5 pets').waitFor()
  const ada = service.withKey(await page.locator('#new-key-text').innerText())

  await page.locator('#lab-lose:enabled').click()
  await page.getByText('There is one order.').waitFor()
  // The second attempt, which Chromium may make by itself on a connection that it used before.
  t.match(await page.locator('#lab-log').innerText(), /order \d+, which was stored/)
  t.equal((await ada.get('/store/orders')).body.length, 1)

  await page.locator('#lab-snapshot').click()
  await page.getByText('Took snapshot').waitFor()
  await page.locator('#lab-empty').click()
  await page.getByText('The store is empty.').waitFor()
  await page.locator('#count-available', { hasText: /^0$/ }).waitFor()
  await page.locator('#lab-restore:enabled').click()
  await page.getByText('Restored 5 pets').waitFor()
  await page.locator('#count-orders', { hasText: /^1$/ }).waitFor()
  t.equal((await ada.get('/pets')).body.length, 5, 'the page read the store again')

  await page.locator('#lab-sunset').click()
  await page.getByText('410 operation_sunset').waitFor()
  t.match(await page.locator('#lab-clock').innerText(), '2030-12-06')
  const height = await page.evaluate<number>('document.documentElement.scrollHeight')
  t.ok(height <= 2_500, `${height} px high on a phone, after all steps of the lab`)
  t.same(complaints.filter((text) => !/ERR_EMPTY_RESPONSE|ERR_CONNECTION|410/.test(text)), [])
  t.same(foreign, [])
})

t.test('the panel is there only with the lab', async (t) => {
  const { nobody } = await startApp(t, { LAB: 'false' })
  t.notMatch((await nobody.get('/')).text, /lab-|\{\{/)
  t.equal((await nobody.get('/docs/home/lab.js')).status, 404)
})
