// Only on SQLite: has no database.

import { mock } from 'node:test'
import t from 'tap'
import { SignupPace } from '../../src/accounts/signup-pace.ts'

t.test('16 sign-ups begin at once, and the others in turn, 16 every 100 ms', async (t) => {
  mock.timers.enable({ apis: ['setInterval'] })
  t.teardown(() => { mock.timers.reset() })
  const pace = new SignupPace()
  const started: number[] = []
  const enter = (i: number): void => {
    const waiting = pace.admit()
    if (waiting === undefined) started.push(i)
    else void waiting.then(() => { started.push(i) })
  }
  const after = async (ms: number): Promise<number[]> => {
    mock.timers.tick(ms)
    await new Promise(setImmediate)
    return started.splice(0)
  }
  const numbers = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i)

  for (const i of numbers(0, 40)) enter(i)
  t.same(await after(0), numbers(0, 16))
  t.same(await after(99), [])
  t.same(await after(1), numbers(16, 32))
  t.same(await after(100), numbers(32, 40))
  for (const i of numbers(40, 50)) enter(i)
  t.same(await after(0), numbers(40, 48), 'those who waited count')
  t.same(await after(100), [48, 49])
  t.same(await after(200), [])
  enter(50)
  t.same(await after(0), [50], 'after a pause, one begins at once')
})

t.test('no more than 1,000 sign-ups wait', async (t) => {
  mock.timers.enable({ apis: ['setInterval'] })
  t.teardown(() => { mock.timers.reset() })
  const pace = new SignupPace()
  for (let i = 0; i < 1_016; i++) void pace.admit()
  t.throws(() => pace.admit(), { code: 'OVERLOADED' })
  mock.timers.tick(100)
  t.ok(pace.admit(), 'others may wait when some have begun')
})
