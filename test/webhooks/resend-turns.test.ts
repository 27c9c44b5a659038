// Only on SQLite: takes turns without a database.

import t from 'tap'
import { Overloaded } from '../../src/errors.ts'
import { createResendTurns } from '../../src/webhooks/resend-turns.ts'

t.test('an account has one resend at a time, 20 that wait, and no influence on others', async (t) => {
  const inTurn = createResendTurns()
  const started: number[] = []
  const ends: Array<() => void> = []
  const work = (n: number) => async (): Promise<number> => {
    started.push(n)
    await new Promise<void>((resolve) => { ends.push(resolve) })
    return n
  }
  const own = Array.from({ length: 20 }, async (_, i) => await inTurn(1, work(i)))
  await t.rejects(inTurn(1, work(20)), Overloaded)
  t.equal(await inTurn(2, async () => await Promise.resolve('at once')), 'at once')
  t.same(started, [0])
  for (let i = 0; i < 20; i++) {
    while (started.length <= i) await new Promise((resolve) => setTimeout(resolve, 1))
    t.same(started.length, i + 1)
    ends[i]!()
    t.equal(await own[i], i)
  }
})

t.test('a resend is followed by a pause, also when it fails', async (t) => {
  // As the connection of a client, it keeps the process alive.
  const connection = setInterval(() => {}, 1_000)
  t.teardown(() => { clearInterval(connection) })
  const inTurn = createResendTurns()
  const failed = inTurn(1, async () => {
    await new Promise((resolve) => setTimeout(resolve, 50))
    throw new Error('failed')
  })
  const began = performance.now()
  await t.rejects(failed, /failed/)
  await inTurn(1, async () => { await Promise.resolve() })
  t.ok(performance.now() - began >= 190, `${performance.now() - began} ms`)
})
