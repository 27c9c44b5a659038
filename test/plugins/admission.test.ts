import t from 'tap'
import { Admission, STRANGERS } from '../../src/plugins/admission.ts'
import { startApp } from '../support/app.ts'

/** Sends requests of an account at once. @returns the number of those that have started so far */
function send (admission: Admission, account: number, count: number): { started: number, all: Promise<unknown> } {
  const result = { started: 0, all: Promise.resolve() as Promise<unknown> }
  const waiting: Array<Promise<void>> = []
  for (let i = 0; i < count; i++) {
    const admitted = admission.admit(account)
    if (admitted === undefined) result.started++
    else waiting.push(admitted.then(() => { result.started++ }))
  }
  result.all = Promise.all(waiting)
  return result
}

async function nextTurn (): Promise<void> {
  await new Promise((resolve) => { setImmediate(resolve) })
}

t.test('an account that sends all requests starts them at once', async (t) => {
  const admission = new Admission()
  t.equal(send(admission, 1, 1).started, 1)
  t.equal(send(admission, 1, 1_000).started, 1_000)
})

t.test('an account that is ahead of another waits, and the other starts at once', async (t) => {
  const admission = new Admission()
  send(admission, 1, 1)
  send(admission, 2, 1)
  const many = send(admission, 1, 100)
  t.ok(many.started > 0 && many.started < 100, `${many.started} requests are started at once`)
  t.equal(send(admission, 2, 20).started, 20)
  await many.all
  t.equal(many.started, 100)
})

t.test('requests start in their order, also when the account may start some again', async (t) => {
  const admission = new Admission()
  send(admission, 2, 1)
  const order: number[] = []
  const requests = Array.from({ length: 60 }, async (_, i) => {
    await admission.admit(1)
    order.push(i)
  })
  send(admission, 2, 5)
  await nextTurn()
  requests.push((async () => {
    await admission.admit(1)
    order.push(60)
  })())
  await Promise.all(requests)
  t.same(order, Array.from({ length: 61 }, (_, i) => i))
})

t.test('all requests start when the other account is gone', async (t) => {
  const admission = new Admission()
  send(admission, 2, 1)
  const many = send(admission, 1, 300)
  t.ok(many.started < 100)
  await many.all
  t.equal(many.started, 300)
})

t.test('a request counts for the account of its API key, and without one for all strangers', async (t) => {
  const { app, openAccount, nobody } = await startApp(t)
  const store = await openAccount()
  const { id } = (await store.get('/account')).body
  const admitted: number[] = []
  const admit = app.admission.admit.bind(app.admission)
  app.admission.admit = (account) => {
    admitted.push(account)
    return admit(account)
  }
  const accountsOf = async (send: () => Promise<unknown>): Promise<number[]> => {
    admitted.length = 0
    await send()
    return [...admitted]
  }
  t.same(await accountsOf(async () => await store.get('/pets')), [id])
  const unknown = { authorization: 'Bearer psk_AAAAAAAA_notakey' }
  const strangers: Record<string, () => Promise<unknown>> = {
    'a sign-up': async () => await nobody.post('/accounts', { name: 'A store' }),
    'a sign-up with a key': async () => await nobody.post('/accounts', { name: 'A store' }, unknown),
    'a request without a key': async () => await nobody.get('/pets'),
    'another scheme': async () => await nobody.get('/pets', { authorization: 'Basic QTpC' }),
    'an unknown key': async () => await nobody.get('/pets', unknown),
    'an unknown path': async () => await nobody.get('/nothing'),
    'the document': async () => await nobody.get('/openapi.json')
  }
  for (const [name, send] of Object.entries(strangers)) t.same(await accountsOf(send), [STRANGERS], name)
  const [checks] = await accountsOf(async () => await nobody.get('/livez'))
  t.not(checks, STRANGERS, 'health checks do not wait for other strangers')
})
