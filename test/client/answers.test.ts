// Only on SQLite: calls the service over HTTP; no statement decides what a client does.

import t from 'tap'
import { ConnectionError, createClient, RedirectError } from '../../src/client/client.ts'
import { startApp } from '../support/app.ts'
import { answerWith, openProxy, type Fault } from './unreliable-proxy.ts'

t.test('answers that are not those of the document', async (t) => {
  const { port } = await startApp(t)
  const proxy = await openProxy(t, port, ({ url }) => url !== '/accounts')
  const other = await openProxy(t, port)
  const { url } = proxy
  const { apiKey } = await createClient({ url }).createAccount({ name: 'A store' })
  const store = createClient({ url, apiKey })
  const redirect = (status: number, location: string): Fault => answerWith(status, '', { location })
  const category = await store.createCategory({ name: 'Dogs' })

  for (const status of [301, 302, 303, 307, 308]) {
    await t.test(`a write is not redirected by ${status}`, async (t) => {
      proxy.faults = [redirect(status, `${url}/messages`), redirect(status, '/messages')]
      const before = proxy.requests.length
      for (let i = 0; i < 2; i++) {
        const error = await store.createMessage({ message: 'Hello' }).catch((error: unknown) => error) as RedirectError
        t.ok(error instanceof RedirectError && error instanceof ConnectionError)
        t.match(error, { name: 'RedirectError', status, location: `${url}/messages` })
        t.match(error.message, `${url}/messages`)
      }
      t.equal(proxy.requests.length - before, 2, 'nothing was repeated')
      t.strictSame(await store.listMessages(), [])
    })
  }

  await t.test('a read is redirected by 307 and 308, and only within its origin', async (t) => {
    for (const status of [307, 308]) {
      proxy.faults = [redirect(status, '/pets'), redirect(status, `${url}/categories/${category.id}`)]
      t.strictSame(await store.getCategory(category.id), category)
      proxy.faults = [redirect(status, `${other.url}/categories/${category.id}`)]
      await t.rejects(store.getCategory(category.id), { name: 'RedirectError', location: /categories/ })
    }
    for (const status of [301, 302, 303]) {
      proxy.faults = [redirect(status, '/categories')]
      await t.rejects(store.getCategory(category.id), { name: 'RedirectError', status })
    }
    proxy.faults = new Array(9).fill(redirect(307, '/categories'))
    await t.rejects(store.listCategories(), { name: 'RedirectError' }, 'a circle ends')
    proxy.faults = [redirect(307, `${other.url}/events`)]
    await t.rejects(store.followEvents().next(), { name: 'RedirectError' }, 'also for the feed')
    t.equal(other.requests.length, 0, 'no other origin got the key')
    const following = createClient({ url, apiKey, fetch: (url, init) => fetch(url, { ...init, redirect: 'follow' }) })
    proxy.faults = [redirect(303, '/messages')]
    await t.rejects(following.createMessage({ message: 'Hello' }), { name: 'RedirectError' }, 'a fetch that follows')
    proxy.faults = []
  })

  await t.test('another status or shape is an error, and not repeated', async (t) => {
    const json = (status: number, value: unknown): Fault => answerWith(status, JSON.stringify(value))
    const cases: Array<[() => Promise<unknown>, Fault]> = [
      [() => store.getCategory(category.id), json(200, [category])],
      [() => store.getCategory(category.id), json(200, { login: 'needed' })],
      [() => store.getCategory(category.id), json(200, null)],
      [() => store.getCategory(category.id), json(206, category)],
      [() => store.getCategory(category.id), answerWith(304, '')],
      [() => store.getCategory(category.id), answerWith(204, '')],
      [() => store.listCategories(), json(200, category)],
      [() => store.listCategories(), json(200, [1])],
      [() => store.listCategories(), json(200, [category, { id: 2 }])],
      [() => store.listCategories(), json(200, [{ ...category, id: '2' }])],
      [() => store.listCategories(), json(200, [{ ...category, description: null }])],
      [() => store.createCategory({ name: 'Cats' }), json(200, [])],
      [() => store.createCategory({ name: 'Cats' }), json(200, category)],
      [() => store.deleteCategory(category.id), json(200, {})],
      [() => store.followEvents().next(), answerWith(204, '')],
      [() => store.getCategory(category.id), json(404, { code: 'not_here', message: 'No', status: 410 })]
    ]
    for (const [call, fault] of cases) {
      const before = proxy.requests.length
      proxy.faults = [fault]
      await t.rejects(call(), { name: 'ConnectionError', status: Number })
      t.equal(proxy.requests.length - before, 1)
    }
    t.strictSame(await store.listCategories(), [category])
  })

  await t.test('a record may have members that this version does not know', async (t) => {
    const grown = { ...category, color: { name: 'red' } }
    proxy.faults = [answerWith(200, JSON.stringify([grown]))]
    t.strictSame(await store.listCategories(), [grown])
  })

  await t.test('Retry-After can be a date', async (t) => {
    const body = JSON.stringify({ code: 'overloaded', message: 'Later', status: 503 })
    const now = Date.now()
    const inAnHour = new Date(now + 3_600_000).toUTCString()
    proxy.faults = [answerWith(503, body, { 'retry-after': inAnHour })]
    const error = await store.getAccount().catch((error: unknown) => error) as { retryAfterMs: number }
    // The date has whole seconds, and the answer took a while.
    t.ok(error.retryAfterMs > 3_500_000 && error.retryAfterMs <= 3_600_000, String(error.retryAfterMs))
    const date = new Date(now - 600_000).toUTCString()
    proxy.faults = [answerWith(503, body, { date, 'retry-after': inAnHour })]
    const late = await store.getAccount().catch((error: unknown) => error) as { retryAfterMs: number }
    t.equal(late.retryAfterMs, 4_200_000, 'by the clock of the service, which is behind')
    proxy.faults = [answerWith(503, body, { 'retry-after': 'soon' })]
    t.ok(await store.getAccount(), 'what is neither counts as absent')
  })
})
