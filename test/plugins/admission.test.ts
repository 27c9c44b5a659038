import { setTimeout as sleep } from 'node:timers/promises'
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
  send(admission, 1, 1)
  await sleep(50)
  t.equal(send(admission, 1, 1).started, 1)
  await sleep(50)
  t.equal(send(admission, 1, 1_000).started, 1_000)
})

/** An account takes part for longer than this after a request, and no interval ends within it, in ms. */
const SHORT_MS = 8

t.test('an account that is ahead of another waits until the other starts requests', async (t) => {
  for (;;) {
    const began = performance.now()
    const admission = new Admission()
    send(admission, 1, 1)
    send(admission, 2, 1)
    await nextTurn()
    const many = send(admission, 1, 100)
    const ahead = many.started
    const { started } = send(admission, 2, 20)
    await nextTurn()
    const afterwards = many.started
    const took = performance.now() - began
    await many.all
    // On a machine that stopped the process meanwhile, requests may start for other reasons.
    if (took >= SHORT_MS) continue
    t.ok(ahead > 0 && ahead < 100, `${ahead} requests are started at once`)
    t.equal(started, 20, 'the other starts its requests at once')
    t.equal(afterwards, ahead + 20)
    return
  }
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

/**
 * Sends requests of an account beside one that sends one in each turn.
 * @returns how many start in each interval, or undefined after pauses in which the other was inactive
 */
async function startsInEachInterval (turn: () => Promise<void>): Promise<number | undefined> {
  const admission = new Admission()
  const began = performance.now()
  const sent: Array<ReturnType<typeof send>> = []
  let longestTurn = 0
  for (let now = began; now < began + 300;) {
    send(admission, 2, 1)
    sent.push(send(admission, 1, 100))
    await turn()
    longestTurn = Math.max(longestTurn, performance.now() - now)
    now = performance.now()
  }
  const started = sent.reduce((sum, requests) => sum + requests.started, 0)
  const intervals = (performance.now() - began) / 10
  await Promise.all(sent.map(async ({ all }) => await all))
  return longestTurn < 15 ? started / intervals : undefined
}

async function busyTurn (): Promise<void> {
  const end = performance.now() + 5
  while (performance.now() < end);
  await nextTurn()
}

t.test('an account ahead starts few requests while the event loop is busy, and more while it is idle', async (t) => {
  const measure = async (turn: () => Promise<void>): Promise<number> => {
    for (;;) {
      const starts = await startsInEachInterval(turn)
      if (starts !== undefined) return starts
    }
  }
  const busy = await measure(busyTurn)
  const idle = await measure(async () => { await sleep(5) })
  t.ok(busy > 16 && busy < 64, `${busy.toFixed(0)} requests in each interval of a busy event loop`)
  t.ok(idle > 2 * busy, `${idle.toFixed(0)} requests in each interval of an idle one`)
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
