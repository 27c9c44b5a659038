import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { Admission, HEALTH_CHECKERS, STRANGERS } from '../../src/plugins/admission.ts'
import { startApp } from '../support/app.ts'

function createAdmission (t: Test): Admission {
  // In a service, its sockets keep the process alive.
  const alive = setInterval(() => {}, 1_000)
  t.teardown(() => { clearInterval(alive) })
  return new Admission()
}

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

t.test('an account that sends all requests starts them soon, and a part in each turn', async (t) => {
  const admission = createAdmission(t)
  t.equal(send(admission, 1, 1).started, 1)
  await nextTurn()
  await nextTurn()
  const many = send(admission, 1, 2_000)
  t.ok(many.started >= 32 && many.started <= 256, `${many.started} start at once`)
  let most = 0
  for (let before = many.started; before < 2_000; before = many.started) {
    await nextTurn()
    most = Math.max(most, many.started - before)
  }
  t.ok(most <= 256, `${most} start in a turn`)
  t.equal(many.started, 2_000)
})

t.test('while connections arrive, requests start in one of 64 turns', async (t) => {
  const admission = createAdmission(t)
  send(admission, 1, 1)
  await nextTurn()
  admission.onConnection()
  await nextTurn()
  const many = send(admission, 1, 2_000)
  let turns = 0
  for (let turn = 0; turn < 130; turn++) {
    admission.onConnection()
    const before = many.started
    await nextTurn()
    if (many.started > before) turns++
  }
  t.ok(turns > 0 && turns <= 3, `requests start in ${turns} of 130 turns`)
  await many.all
})

t.test('each of several accounts starts requests while connections arrive', async (t) => {
  const admission = createAdmission(t)
  for (const account of [1, 2]) send(admission, account, 1)
  await nextTurn()
  admission.onConnection()
  await nextTurn()
  const many = send(admission, 1, 2_000)
  const few = send(admission, 2, 10)
  for (let turn = 0; turn < 3 * 64; turn++) {
    admission.onConnection()
    await nextTurn()
  }
  t.equal(few.started, 10)
  t.ok(many.started > 0 && many.started < 2_000, `${many.started} of the other's`)
  await many.all
})

t.test('many busy accounts start as many requests as each other', async (t) => {
  const admission = createAdmission(t)
  const started = new Array<number>(20).fill(0)
  let left = 15_000
  const connections = started.flatMap((_, account) => Array.from({ length: 64 }, async () => {
    while (left > 0) {
      await admission.admit(account + 1)
      started[account]!++
      left--
      const end = performance.now() + 0.05
      while (performance.now() < end) continue
      await nextTurn()
    }
  }))
  await Promise.all(connections)
  const [least, most] = [Math.min(...started), Math.max(...started)]
  t.ok(most < 1.5 * least, `an account has started ${most} requests, another ${least}`)
})

t.test('admission knows of each connection to a service', async (t) => {
  const { app, port } = await startApp(t)
  let count = 0
  app.admission.onConnection = () => { count++ }
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  socket.end()
  await once(socket.resume(), 'close')
  t.equal(count, 1)
})

t.test('an account that is ahead of another waits, and the other starts at once', async (t) => {
  const admission = createAdmission(t)
  send(admission, 1, 1)
  send(admission, 2, 1)
  const many = send(admission, 1, 100)
  t.ok(many.started > 0 && many.started < 100, `${many.started} requests are started at once`)
  t.equal(send(admission, 2, 20).started, 20)
  await many.all
  t.equal(many.started, 100)
})

t.test('requests start in their order, also when the account may start some again', async (t) => {
  const admission = createAdmission(t)
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
  const admission = createAdmission(t)
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
  // Until the cached key is too old.
  await sleep(4_500)
  t.same(await accountsOf(async () => await store.get('/pets')), [id], 'the look-up of a key that was known')
})

t.test('an account makes up for what its requests cost, and the others start at once meanwhile', async (t) => {
  const admission = createAdmission(t)
  send(admission, 2, 1)
  send(admission, 1, 1)
  // A request that took 50 ms. Only the account that it belongs to is ahead.
  admission.charge(1, performance.now() - 50)
  const costly = send(admission, 1, 10)
  t.equal(costly.started, 0)
  t.equal(send(admission, 2, 20).started, 20)
  await costly.all
  t.equal(costly.started, 10, 'it starts them later')
})

t.test('an account pays once for what its requests cost', async (t) => {
  const admission = createAdmission(t)
  send(admission, 2, 1)
  send(admission, 1, 1)
  admission.charge(1, performance.now() - 20)
  const costly = send(admission, 1, 10)
  // The other one starts 32 in each turn. It makes up for 20 ms before an interval lets the first one start some.
  let turns = 0
  for (; costly.started === 0; turns++) {
    send(admission, 2, 100)
    await nextTurn()
  }
  t.ok(turns < 40, `it starts some after ${turns} turns`)
})

t.test('a health check holds up no account that sends all other requests', async (t) => {
  const admission = createAdmission(t)
  send(admission, 1, 1)
  await nextTurn()
  send(admission, HEALTH_CHECKERS, 1)
  const many = send(admission, 1, 500)
  // Each turn with a request lets others start.
  for (let turn = 0; turn < 500 / 32 + 3; turn++) {
    send(admission, 1, 1)
    await nextTurn()
  }
  t.equal(many.started, 500)
})

t.test('what a request cost is remembered while the event loop is blocked', async (t) => {
  const admission = createAdmission(t)
  send(admission, 2, 1)
  send(admission, 1, 1)
  const end = performance.now() + 50
  while (performance.now() < end) continue
  admission.charge(1, end - 50)
  await nextTurn()
  t.equal(send(admission, 1, 10).started, 0, 'the other account takes part: it could not be heard')
})

t.test('large bodies are parsed one by one beside another account', async (t) => {
  const admission = createAdmission(t)
  send(admission, 2, 1)
  send(admission, 1, 1)
  t.equal(admission.admitBody(1, 1_000), undefined, 'a small one costs no more than its request')
  const bodies = Array.from({ length: 10 }, () => admission.admitBody(1, 110_000))
  t.equal(bodies.filter((admitted) => admitted === undefined).length, 1)
  t.equal(send(admission, 2, 20).started, 20)
  await Promise.all(bodies)
})

t.test('a body, a document and an error are charged to the account that asks', async (t) => {
  const { app, openAccount, nobody } = await startApp(t)
  const store = await openAccount()
  const charged = new Set<number>()
  const charge = app.admission.charge.bind(app.admission)
  app.admission.charge = (account, ...cost) => {
    charged.add(account)
    charge(account, ...cost)
  }
  const chargedBy = async (send: () => Promise<unknown>): Promise<number[]> => {
    charged.clear()
    await send()
    return [...charged]
  }
  const names = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`name ${i}`, i]))
  t.same(await chargedBy(async () => await store.post('/categories', names)), [store.account])
  t.same(await chargedBy(async () => await store.get('/pets')), [store.account])
  for (const path of ['/openapi.yaml', '/docs/viewer.js', '/pets', '/nothing']) {
    t.same(await chargedBy(async () => await nobody.get(path)), [STRANGERS], path)
  }
})
