// Only on SQLite: no database is asked.

import type { FastifyInstance } from 'fastify'
import { mock } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { createPace, startJob } from '../../src/database/job.ts'
import { startJobAlone } from '../support/jobs.ts'
import { eventually } from '../support/receiver.ts'

const MINUTE = 60_000

interface JobAlone {
  app: FastifyInstance
  pass: (ms: number) => void
  logged: unknown[]
}

async function startStep (t: Test, every: number, step: () => Promise<boolean>): Promise<JobAlone> {
  let app: FastifyInstance | undefined
  const logged: unknown[] = []
  const pass = await startJobAlone(t, {}, async (alone) => {
    app = alone
    alone.log.warn = (...line: unknown[]) => { logged.push(line) }
    startJob(alone, { every, step, failure: 'cannot do it' })
  })
  return { app: app!, pass, logged }
}

/** Lets all that waits for no timer run. */
async function settle (): Promise<void> {
  await sleep(20)
}

t.test('a step is repeated while there may be more, after a pause of three times its duration', async (t) => {
  const steps: Array<{ began: number, ended: number }> = []
  const { pass } = await startStep(t, 5_000, async () => {
    const began = performance.now()
    await sleep(20)
    steps.push({ began, ended: performance.now() })
    return steps.length % 4 > 0
  })
  pass(5_000)
  await eventually(() => steps.length === 4)
  for (const [i, { began }] of steps.slice(1).entries()) {
    const last = steps[i]!
    // A timer may end a millisecond early.
    const least = 3 * (last.ended - last.began) - 2
    t.ok(began - last.ended >= least, `a pause of ${began - last.ended} ms after ${last.ended - last.began} ms`)
  }
  await settle()
  t.equal(steps.length, 4, 'until there is no more')
  pass(5_000)
  await eventually(() => steps.length === 8)
  t.equal(steps.length, 8, 'the next run begins anew')
})

t.test('a run never overlaps the one before it', async (t) => {
  let began = 0
  let end = (): void => {}
  const { pass } = await startStep(t, 5_000, async () => {
    began++
    await new Promise<void>((resolve) => { end = resolve })
    return false
  })
  for (let i = 0; i < 3; i++) pass(5_000)
  await settle()
  t.equal(began, 1)
  end()
  await settle()
  pass(5_000)
  t.equal(began, 2)
})

t.test('a failed step is logged, and the next run tries again', async (t) => {
  let steps = 0
  const error = new Error('some defect')
  const { pass, logged } = await startStep(t, 5_000, async () => {
    if (++steps === 1) throw error
    return false
  })
  pass(5_000)
  await settle()
  t.same([steps, logged], [1, [[{ err: error }, 'cannot do it']]])
  pass(5_000)
  await settle()
  t.same([steps, logged.length], [2, 1])
})

t.test('an hourly job runs in the first minute, and then every hour', async (t) => {
  const ranAt: number[] = []
  let minute = 0
  const { pass } = await startStep(t, 60 * MINUTE, async () => {
    ranAt.push(minute)
    return false
  })
  while (++minute <= 130) {
    pass(MINUTE)
    await Promise.resolve()
    await new Promise(setImmediate)
  }
  t.same(ranAt, [1, 61, 121])
})

for (const [outcome, finish] of Object.entries({
  'that has more': async (): Promise<boolean> => true,
  'that fails': async (): Promise<boolean> => { throw new Error('the database is closed') }
})) {
  t.test(`after the app has closed, no step follows one ${outcome}, and nothing is logged`, async (t) => {
    let steps = 0
    let end = (): void => {}
    const { app, pass, logged } = await startStep(t, 5_000, async () => {
      steps++
      await new Promise<void>((resolve) => { end = resolve })
      return await finish()
    })
    pass(5_000)
    await app.close()
    end()
    await settle()
    pass(5_000)
    await settle()
    t.same([steps, logged], [1, []])
  })
}

t.test('a pause ends when the work stops', async (t) => {
  let now = 0
  mock.method(performance, 'now', () => now)
  t.teardown(() => { mock.restoreAll() })
  const stop = new AbortController()
  let steps = 0
  const run = createPace(stop.signal)(async () => {
    steps++
    now += 60 * MINUTE
    return true
  })
  await new Promise(setImmediate)
  stop.abort()
  await run
  t.equal(steps, 1)
})

t.test('a run that ends after a step leaves no pause to the others', async (t) => {
  let now = 0
  mock.method(performance, 'now', () => now)
  t.teardown(() => { mock.restoreAll() })
  const runSteps = createPace(new AbortController().signal)
  await Promise.all(Array.from({ length: 10 }, async () => {
    await runSteps(async () => {
      now += 60 * MINUTE
      return false
    })
  }))
  let steps = 0
  await runSteps(async () => ++steps < 2)
  t.equal(steps, 2)
})

t.test('the steps of all that run by one pace take turns', async (t) => {
  const runSteps = createPace(new AbortController().signal)
  const steps: Array<{ began: number, ended: number }> = []
  await Promise.all([1, 2].map(async () => {
    let isFirst = true
    await runSteps(async () => {
      const began = performance.now()
      await sleep(20)
      steps.push({ began, ended: performance.now() })
      const hasMore = isFirst
      isFirst = false
      return hasMore
    })
  }))
  t.equal(steps.length, 4)
  const [first, second, third, fourth] = steps
  const pause = 3 * (first!.ended - first!.began)
  t.ok(third!.began - first!.ended >= pause - 2, 'after the pause of its own')
  const both = pause + 3 * (second!.ended - second!.began)
  t.ok(fourth!.began - first!.ended >= both - 4, 'after both pauses')
})
