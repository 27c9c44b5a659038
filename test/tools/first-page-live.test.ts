import t from 'tap'
import { startApp, type Client } from '../support/app.ts'
import { openBrowser, withoutBrowser, type Visit } from './browser.ts'
import { eventually } from '../support/receiver.ts'

t.test('the store at a glance', { skip: withoutBrowser }, async (t) => {
  const service = await startApp(t)
  const { visit } = await openBrowser(t, `http://127.0.0.1:${service.port}`)

  /** Opens the page in the store of a client. */
  async function glanceOf (
    client: Client
  ): Promise<Visit & { figure: (name: string, value: string) => Promise<void> }> {
    const visited = await visit('/')
    const { page } = visited
    await page.getByText('I already have an API key').click()
    await page.locator('#key-text').fill(client.key!)
    await page.keyboard.press('Enter')
    await page.locator('#feed-state[data-state="live"]').waitFor()
    return {
      ...visited,
      figure: async (name, value) => {
        await page.locator(`#count-${name}`).getByText(value, { exact: true }).waitFor()
      }
    }
  }

  await t.test('shows existing records, and the writes of other clients', async (t) => {
    const client = await service.openAccount()
    const { body: category } = await client.post('/categories', { name: 'Dogs' })
    // More than one page of each list.
    await Promise.all(
      Array.from(
        { length: 120 },
        async (_, i) =>
          await client.post('/pets', {
            name: `Pet ${i}`,
            categoryId: category.id,
            status: i % 3 === 0 ? 'sold' : 'available'
          })
      )
    )
    const { page, figure, complaints } = await glanceOf(client)
    await figure('available', '80')
    await figure('sold', '40')

    const { body: pet } = await client.post('/pets', { name: 'Rex', categoryId: category.id })
    await client.patch(`/inventory/${pet.id}`, { quantity: 3 })
    await figure('available', '81')
    await figure('units', '3')
    const { body: order } = await client.post('/store/orders', { petId: pet.id, quantity: 3 })
    await figure('available', '80')
    await figure('pending', '1')
    await figure('units', '0')
    await figure('orders', '1')
    await client.patch(`/store/orders/${order.id}`, { complete: true })
    await figure('orders', '0')
    await figure('sold', '41')
    const { body: other } = await client.post('/pets', { name: 'Waldi', categoryId: category.id })
    await client.delete(`/pets/${other.id}`)
    await page.locator('#events').getByText('Waldi was removed').waitFor()
    await figure('available', '80')
    await page
      .locator('#glance-summary')
      .filter({ hasText: '80 available, 0 pending, 41 sold' })
      .waitFor({ state: 'attached' })
    t.same(complaints, [])
  })

  await t.test('counts the pets that it does not show at every width, and shows them on request', async (t) => {
    const client = await service.openAccount()
    const { body: { id: categoryId } } = await client.post('/categories', { name: 'Fish' })
    await Promise.all(Array.from({ length: 21 }, async (_, i) =>
      await client.post('/pets', { name: `Fish ${i}`, categoryId })))
    const { page, figure } = await glanceOf(client)
    await figure('available', '21')
    const rows = page.locator('#shelf tr:visible')
    const events = page.locator('#events li:visible')
    for (const [width, shown, rest, listed] of [[1280, 8, 13, 8], [390, 3, 18, 2]] as const) {
      await page.setViewportSize({ width, height: 800 })
      const more = page.getByRole('button', { name: `Show ${rest} more` })
      await more.waitFor()
      t.same([await rows.count(), await events.count()], [shown, listed], `${width} px`)
      await more.click()
      const fewer = page.getByRole('button', { name: 'Show fewer pets' })
      await fewer.waitFor()
      t.equal(await rows.count(), 21)
      await fewer.click()
    }
  })

  await t.test('a broken stream reconnects after a delay, and loses and repeats no event', async (t) => {
    const client = await service.openAccount()
    const { body: category } = await client.post('/categories', { name: 'Cats' })
    const { page, figure } = await glanceOf(client)
    const resumed: Array<string | undefined> = []
    let isOffline = false
    await page.route('**/events', async (route) => {
      if (isOffline) {
        await route.abort()
      } else {
        resumed.push(route.request().headers()['last-event-id'])
        await route.continue()
      }
    })
    const texts = async (): Promise<string[]> => await page.locator('#events li span').allInnerTexts()

    for (const round of [1, 2]) {
      const before = resumed.length
      // Without this, the page could reconnect before a slow browser shows that it waits.
      isOffline = true
      service.app.server.closeAllConnections()
      await page.locator('#feed-state[data-state="waiting"]').waitFor()
      t.match(await page.locator('#feed-state').innerText(), 'Connection lost')
      isOffline = false
      await client.post('/pets', { name: `Minka ${round}`, categoryId: category.id })
      await figure('available', String(round))
      await page.locator('#feed-state[data-state="live"]').waitFor()
      t.same(resumed.slice(before), [String(round)], 'once, after the last received event')
      t.same(
        (await texts()).filter((text) => text.startsWith('Minka')),
        [2, 1].slice(2 - round).map((number) => `Minka ${number} was added`)
      )
    }
  })

  await t.test('the delay grows while the service does not respond', async (t) => {
    const client = await service.openAccount()
    const { page } = await glanceOf(client)
    await page.route('**/events', async (route) => { await route.abort() })
    // By the clock of the page, whose timers are never early.
    await page.evaluate(`{
      const { fetch } = window
      window.tries = []
      window.fetch = (...request) => {
        if (String(request[0]).endsWith('/events')) window.tries.push(performance.now())
        return fetch(...request)
      }
    }`)
    service.app.server.closeAllConnections()
    let tries: number[] = []
    await eventually(async () => {
      tries = await page.evaluate<number[]>('window.tries')
      return tries.length >= 4
    })
    const pauses = tries.slice(1).map((time, i) => time - tries[i]!)
    // Each delay is between half and all of 1 s, 2 s, 4 s …
    t.ok(pauses.every((pause, i) => pause >= 490 * 2 ** i), JSON.stringify(pauses))
    await page.unroute('**/events')
    await page.locator('#feed-state[data-state="live"]').waitFor()
  })

  await t.test('a revoked key ends the session, and the page shows the reason', async (t) => {
    const client = await service.openAccount()
    const { page } = await glanceOf(client)
    const { body: other } = await client.post('/account/keys', {})
    const [first] = (await client.get('/account/keys')).body
    await service.withKey(other.apiKey).delete(`/account/keys/${first.id}`)
    await page.getByText(/This API key (was revoked|does not exist or was revoked)/).waitFor()
    t.ok(await page.locator('#store-name').isVisible())
    t.equal(await page.evaluate('sessionStorage.length'), 0)
  })
})
