import t from 'tap'
import { startApp } from '../support/app.ts'
import { newFault } from '../lab/fixture.ts'
import { setLimits } from '../limits/fixture.ts'
import { turnOn } from './fixture.ts'

t.test('the journal has requests by inject as those over HTTP', async (t) => {
  const { app, openAccount, withKey } = await startApp(t)
  const owner = await openAccount()
  await turnOn(owner)
  const reader = (await owner.post('/account/keys', { readOnly: true })).body.apiKey
  const bodies = ['{"name":"Dogs"}', '{"name":"Cats"}', '{"name":"Fish"}', '{"name":"Mice"}', '{"name":"Hens"}']
  const inject = async (payload: string, key: string): Promise<void> => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    await app.inject({ method: 'POST', url: '/categories', payload, headers }).catch(() => {})
  }
  const http = async (body: string, key: string): Promise<void> => {
    await withKey(key, owner.account).post('/categories', body, { 'content-type': 'application/json' }).catch(() => {})
  }
  const recorded: object[][] = []
  for (const send of [inject, http]) {
    await owner.delete('/lab/requests')
    await owner.delete('/lab/faults')
    await newFault(owner, { operation: 'createCategory', effect: { type: 'lose_answer' }, after: 1 })
    await newFault(owner, { operation: 'createCategory', effect: { type: 'refuse', status: 503 }, after: 1 })
    await setLimits(owner, { requests: 4 })
    for (const [i, body] of bodies.entries()) await send(body, i === 3 ? reader : owner.key!)
    await owner.delete('/lab/limits')
    const { body } = await owner.get('/lab/requests')
    recorded.push(body.map(({ status, outcome, body, answer, attemptOf }: any) =>
      ({ status, outcome, body, answer: answer?.replace(/\d+/, 'n'), attemptOf })))
  }
  t.same(recorded[1]!.map(({ status, outcome }: any) => status ?? outcome), [201, 'lost', 503, 403, 429])
  t.strictSame(recorded[0], recorded[1])
})
