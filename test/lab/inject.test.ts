import { once } from 'node:events'
import t from 'tap'
import { startApp, type Client } from '../support/app.ts'

t.test('faults and streams of requests by inject', async (t) => {
  const { app, openAccount } = await startApp(t)
  const inject = async (client: Client, method: 'GET' | 'POST' | 'HEAD', url: string, more: object = {}) =>
    await app.inject({ method, url, ...more, headers: { authorization: `Bearer ${client.key!}`, ...(more as any).headers } })
  const stream = { headers: { accept: 'text/event-stream' }, payloadAsStream: true }
  const pet = { payload: { name: 'Dogs' } }

  for (const effect of [{ type: 'reset' }, { type: 'lose_answer' }, { type: 'truncate', bytes: 3 }]) {
    await t.test(`${effect.type} ends the answer with an error`, async (t) => {
      const owner = await openAccount()
      const fault = { operation: 'createCategory', effect }
      await owner.post('/lab/faults', fault)
      await t.rejects(inject(owner, 'POST', '/categories', pet), { code: 'LIGHT_ECONNRESET' })
      const count = effect.type === 'reset' ? 0 : 1
      t.equal((await owner.get('/categories')).body.length, count, 'the effect is that of a request over HTTP')
      await owner.post('/lab/faults', { operation: 'listCategories', effect })
      await t.rejects(inject(owner, 'HEAD', '/categories'), { code: 'LIGHT_ECONNRESET' })
      await owner.post('/lab/faults', { operation: 'listEvents', effect })
      const cut = inject(owner, 'GET', '/events', stream).then(async (answer) => {
        const body = answer.stream()
        body.resume()
        await once(body, 'end')
      })
      await t.rejects(cut, { code: 'LIGHT_ECONNRESET' })
      t.equal((await owner.get('/events')).body.filter(({ type }: any) => type === 'fault.hit').length, 3)
    })
  }

  await t.test('delay, trickle, corrupt and replace_answer have their effect', async (t) => {
    const owner = await openAccount()
    const list = async (effect: object) => {
      await owner.post('/lab/faults', { operation: 'listCategories', effect })
      return await inject(owner, 'GET', '/categories')
    }
    t.equal((await list({ type: 'delay', ms: 1 })).body, '[]')
    t.equal((await list({ type: 'trickle', bytesPerSecond: 1000 })).body, '[]')
    t.not((await list({ type: 'corrupt', how: 'invalid_json' })).body, '[]')
    t.equal((await list({ type: 'replace_answer', status: 502 })).statusCode, 502)
  })

  await t.test('a stream delivers its events', async (t) => {
    const owner = await openAccount()
    await owner.post('/categories', { name: 'Dogs' })
    const answer = await inject(owner, 'GET', '/events', stream)
    t.equal(answer.statusCode, 200)
    let text = ''
    for await (const chunk of answer.stream()) if ((text += chunk).includes('category.created')) break
    t.match(text, /^id: 1$/m)
  })
})
