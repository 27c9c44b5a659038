import t from 'tap'
import { startApp } from '../support/app.ts'
import { openBrowser, withoutBrowser } from './browser.ts'
import { count, newOrder, newPet } from '../support/fixtures.ts'

t.test('the panel of the lab in a browser', { skip: withoutBrowser }, async (t) => {
  const service = await startApp(t, { PET_READ_SUNSET: '2030-12-24' })
  const { visit } = await openBrowser(t, `http://127.0.0.1:${service.port}`)

  await t.test('loses a response, empties and restores the store, and moves its clock', async (t) => {
    const { page, complaints, foreign } = await visit('/', { viewport: { width: 360, height: 800 } })
    await page.locator('#open-form fieldset:enabled').waitFor()
    t.equal(await page.locator('#lab-why').innerText(), 'Create a store first.', 'the reason for disabled buttons')
    await page.locator('#open-form button').first().click()
    await page.locator('#fill:enabled').click()
    await page.getByText('Added 5 pets').waitFor()
    t.equal(await page.locator('#lab-why').innerText(), '')
    t.ok(await page.locator('#lab-restore').isDisabled(), 'there is no snapshot')
    const ada = service.withKey(await page.locator('#new-key-text').innerText())

    await page.locator('#lab-lose:enabled').click()
    await page.getByText('There is one order.').waitFor()
    // Chromium may repeat the request by itself, on a connection that it used before. Then no attempt fails.
    const repeated = /1: the response was lost\. Your browser repeated the request by itself, and|2:/.source
    t.match(await page.locator('#lab-log').innerText(),
      new RegExp(`Attempt (${repeated}) the service answered with the stored order \\d+\\. There is one order`))
    t.equal((await ada.get('/store/orders')).body.length, 1)
    await page.locator('#fault-code').click()
    t.match(await page.locator('[data-request="fault"] .answer').innerText(),
      /^POST \/lab\/faults {"operation":"placeOrder","effect":{"type":"lose_answer"}}\n201 Created\n/)
    await page.locator('#fault-code').click()

    await page.locator('#lab-snapshot').click()
    await page.getByText('Took snapshot').waitFor()
    await page.locator('#lab-empty').click()
    await page.getByRole('button', { name: 'Keep the records' }).click()
    await page.locator('#empty-store').waitFor({ state: 'hidden' })
    t.equal((await ada.get('/pets')).body.length, 5, 'the user was asked first')
    await page.locator('#lab-empty').click()
    await page.locator('#empty-store').getByText('My store').waitFor()
    await page.locator('#empty-store').getByRole('button', { name: 'Empty the store' }).click()
    await page.getByText('The store is empty.').waitFor()
    await page.locator('#count-available', { hasText: /^0$/ }).waitFor()
    await page.locator('#lab-restore:enabled').click()
    await page.getByText('Restored 5 pets').waitFor()
    await page.locator('#count-orders', { hasText: /^1$/ }).waitFor()
    t.equal((await ada.get('/pets')).body.length, 5, 'the page read the store again')

    t.match(await page.locator('#lab-hint').innerText(), 'The clock of a store never goes back.')
    await page.locator('#lab-sunset').click()
    await page.locator('#move-clock').getByText('goes to 2030-12-24, the sunset').waitFor()
    await page.getByRole('button', { name: 'Leave the clock' }).click()
    await page.locator('#move-clock').waitFor({ state: 'hidden' })
    t.same((await ada.get('/lab/clock')).body, { offsetSeconds: 0 })
    await page.locator('#lab-sunset').click()
    await page.getByRole('button', { name: 'Move the clock', exact: true }).click()
    await page.getByText('410 operation_sunset').waitFor()
    t.match(await page.locator('#lab-clock').innerText(), '2030-12-24')
    const height = await page.evaluate<number>('document.documentElement.scrollHeight')
    t.ok(height <= 2_500, `${height} px high on a phone, after all steps of the lab`)
    t.same(complaints.filter((text) => !/ERR_EMPTY_RESPONSE|ERR_CONNECTION|410/.test(text)), [])
    t.same(foreign, [])
  })

  await t.test('knows the clock and the newest snapshot of a store that it enters', async (t) => {
    const ben = await service.openAccount('Store of Ben')
    await ben.post('/lab/snapshots', { label: 'Old' })
    const { body: { id } } = await ben.post('/lab/snapshots', { label: 'Before the migration' })
    await ben.post('/lab/clock/advance', { to: '2031-01-02T03:04:00Z' })
    const { page } = await visit(`/#key=${ben.key}`)
    await page.getByRole('button', { name: `Restore snapshot ${id}: Before the migration` }).waitFor()
    t.ok(await page.locator('#lab-restore').isEnabled())
    t.equal(await page.locator('#lab-clock').innerText(), 'The clock of this store shows 2031-01-02.')
    await page.locator('#leave').click()
    await page.locator('#lab-restore:disabled', { hasText: 'Restore a snapshot' }).waitFor()
    t.equal(await page.locator('#lab-clock').innerText(), 'The clock shows real time.')
  })

  await t.test('events of the lab have sentences, and pets keep their names after a reset', async (t) => {
    const cleo = await service.openAccount('Store of Cleo')
    const rex = await newPet(cleo, { name: 'Rex' })
    await count(cleo, rex, 3)
    const { page } = await visit(`/#key=${cleo.key}`)
    await page.locator('#feed-state[data-state="live"]').waitFor()
    const order = await newOrder(cleo, rex, 1)
    const { body: snapshot } = await cleo.post('/lab/snapshots', {})
    const { body: fault } = await cleo.post('/lab/faults', {
      operation: 'listPets', effect: { type: 'refuse', status: 503 }
    })
    await cleo.get('/pets')
    const events = page.locator('#events')
    await events.getByText(`Fault ${fault.id} refused listPets`).waitFor()
    await cleo.post('/lab/reset', {})
    await events.getByText('The store was reset').waitFor()
    await events.getByText(`Order ${order}: 1 × Rex`).waitFor()
    await events.getByText('Rex: 3 in stock').waitFor()
    await cleo.post(`/lab/snapshots/${snapshot.id}/restore`, {})
    await events.getByText(`The store was restored from snapshot ${snapshot.id}`).waitFor()

    await cleo.post('/lab/clock/advance', { to: '2031-01-02T03:04:05Z' })
    await events.getByText('The clock moved to 2031-01-02 03:04').waitFor()
    // The jump has expired the events before it. The page reads what is left.
    await cleo.post('/lab/reset', {})
    await events.locator('li:nth-child(2)', { hasText: 'The clock moved' }).waitFor()
    const types = (await cleo.get('/events')).body.map(({ type }: { type: string }) => type)
    t.same(types, ['clock.advanced', 'store.replaced'])
    t.same(await events.locator('code').allInnerTexts(), types.reverse())
  })
})

t.test('the panel is there only with the lab', async (t) => {
  const { nobody } = await startApp(t, { LAB: 'false' })
  t.notMatch((await nobody.get('/')).text, /lab-|\{\{/)
  t.equal((await nobody.get('/docs/home/lab.js')).status, 404)
})
