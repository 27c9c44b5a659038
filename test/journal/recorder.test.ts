import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { Commit } from '../../src/database/group-commit/committer.ts'
import { DatabaseUnavailable, Overloaded, Unauthorized } from '../../src/errors.ts'
import type { CapturedRequest } from '../../src/journal/captured-request.ts'
import { CapturedBody } from '../../src/journal/captured-body.ts'
import { HASH_LENGTH, type EndedRequest } from '../../src/journal/batches.ts'
import type { RecordInput } from '../../src/journal/commands.ts'
import { createRecorder, type Recorder } from '../../src/journal/recorder.ts'
import { startApp } from '../support/app.ts'
import { eventually } from '../support/receiver.ts'
import { turnOn } from './fixture.ts'

const log = { warn () {} } as never

const KEEP = 1_000

function ended (path: string, bytes = 0): EndedRequest {
  const known = { operation: 'listPets', method: 'GET', path, keyId: 1, outcome: 'answered' } as const
  const text = JSON.stringify({ path, fields: [], answer: 'x'.repeat(bytes) })
  return { text, facts: { ...known, startedMs: 1, endedMs: 2 }, attemptHash: path.padEnd(HASH_LENGTH) }
}

function captured (path: string, bytes = 0): CapturedRequest {
  return { bytes: bytes + 500, endedAt: performance.now(), describe: () => ended(path, bytes) }
}

/** The most that may wait of all accounts. */
const PROCESS_BYTES = 33_554_432

const numbers = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, i) => from + i)

/** Returns what was recorded: requests and the memory that they took, and how many were dropped. */
function sumOf (inputs: RecordInput[]): { count: number, bytes: number, dropped: number } {
  const requests = inputs.flatMap(({ requests }) => requests)
  const bytes = requests.reduce((sum, { text }) => sum + 500 + JSON.parse(text).answer.length, 0)
  return { count: requests.length, bytes, dropped: inputs.reduce((sum, { dropped }) => sum + dropped, 0) }
}

interface Tried {
  recorder: Recorder
  inputs: RecordInput[]
  charged: Array<[account: number, ms: number]>
}

/** A recorder whose transactions end as `outcome` says. */
function recorderWith (outcome: (input: RecordInput) => Promise<void>): Tried {
  const inputs: RecordInput[] = []
  const charged: Tried['charged'] = []
  const charge = (account: number, began: number): void => { charged.push([account, performance.now() - began]) }
  const commit = async (_command: unknown, input: RecordInput): Promise<unknown> => {
    inputs.push(input)
    await outcome(input)
    return { record: undefined, replayed: false }
  }
  return { recorder: createRecorder({ commit: commit as Commit, log, charge }), inputs, charged }
}

t.test('what waits to be recorded', async (t) => {
  await t.test('is bounded: the oldest requests of the account are dropped and counted', async (t) => {
    let release = (): void => {}
    const held = new Promise<void>((resolve) => { release = resolve })
    const { recorder, inputs } = recorderWith(async () => { await held })
    recorder.add(1, captured('/first'), KEEP)
    const first = recorder.recorded(1)
    for (let i = 0; i < 100; i++) recorder.add(1, captured(`/${i}`, 100_000), KEEP)
    recorder.add(2, captured('/other'), KEEP)
    release()
    await first
    await recorder.recorded(1)
    await recorder.recorded(2)
    const own = inputs.filter(({ account }) => account === 1)
    const paths = own.flatMap(({ requests }) => requests.map(({ facts: { path } }) => path))
    const dropped = own.reduce((sum, input) => sum + input.dropped, 0)
    t.equal(paths.length + dropped, 101)
    t.ok(dropped > 55 && dropped < 65, `${dropped} of 100 were dropped: 4 MB remained`)
    t.equal(paths.at(-1), '/99')
    t.equal(inputs.find(({ account }) => account === 2)!.requests.length, 1, 'of another account, none')
  })

  await t.test('is bounded for all accounts together, also if large requests follow small ones', async (t) => {
    const { recorder, inputs } = recorderWith(async () => {})
    const add = (accounts: number[], count: number, bytes: number): void => {
      for (const account of accounts) for (let i = 0; i < count; i++) recorder.add(account, captured(`/${i}`, bytes), KEEP)
    }
    add(numbers(1, 8), KEEP, 3_600)
    add(numbers(9, 108), 1, 100_000)
    await recorder.close()
    const { count, bytes, dropped } = sumOf(inputs)
    t.equal(count + dropped, 8_100)
    t.ok(bytes > 30_000_000 && bytes <= PROCESS_BYTES, `${bytes} bytes`)
  })

  await t.test('is bounded beside what is being recorded, of which nothing is dropped', async (t) => {
    let release = (): void => {}
    const held = new Promise<void>((resolve) => { release = resolve })
    const { recorder, inputs } = recorderWith(async () => { await held })
    const writing = numbers(1, 8).map(async (account) => {
      recorder.add(account, captured('/a', 4_000_000), KEEP)
      await recorder.recorded(account)
    })
    await eventually(() => inputs.length === 8)
    for (let i = 0; i < 20; i++) recorder.add(9, captured(`/${i}`, 100_000), KEEP)
    release()
    await Promise.all(writing)
    await recorder.recorded(9)
    const { bytes, dropped } = sumOf(inputs)
    t.equal(sumOf(inputs.filter(({ account }) => account < 9)).count, 8)
    t.ok(bytes <= PROCESS_BYTES, `${bytes} bytes`)
    const [{ requests }] = inputs.filter(({ account }) => account === 9) as [RecordInput]
    t.equal(requests.length + dropped, 20)
    t.equal(requests.at(-1)?.facts.path, '/19', 'the newest is left')
  })

  await t.test('is no more than the journal keeps, if that is more than one transaction records', async (t) => {
    const { recorder, inputs } = recorderWith(async () => {})
    for (let i = 0; i < 1_200; i++) recorder.add(1, captured(`/${i}`), 700)
    for (let i = 0; i < 200; i++) recorder.add(2, captured(`/${i}`), 1)
    await recorder.recorded(1)
    await recorder.recorded(2)
    const own = inputs.filter(({ account }) => account === 1)
    const paths = own.flatMap(({ requests }) => requests.map(({ facts: { path } }) => path))
    t.same([paths.length, paths[0], paths.at(-1)], [700, '/500', '/1199'])
    t.equal(inputs.find(({ account }) => account === 2)!.requests.length, 200, 'among few, attempts find the last one')
    t.ok(inputs.every(({ dropped }) => dropped === 0))
  })

  await t.test('is recorded again after a refusal, and not after an unknown outcome', async (t) => {
    const locked = new DatabaseUnavailable({ cause: Object.assign(new Error('lock timeout'), { code: '55P03' }) })
    const errors: Error[] = [new Overloaded(), locked, new DatabaseUnavailable()]
    const { recorder, inputs } = recorderWith(async () => {
      const error = errors.shift()
      if (error !== undefined) throw error
    })
    recorder.add(1, captured('/a'), KEEP)
    await t.rejects(recorder.recorded(1), { code: 'OVERLOADED' })
    await t.rejects(recorder.recorded(1), { code: 'DATABASE_UNAVAILABLE' })
    await t.rejects(recorder.recorded(1), { code: 'DATABASE_UNAVAILABLE' })
    recorder.add(1, captured('/b'), KEEP)
    await recorder.recorded(1)
    t.same(inputs.map(({ requests, dropped }) => [requests.map(({ facts }) => facts.path).join(), dropped]), [
      ['/a', 0], ['/a', 0], ['/a', 0], ['/b', 1]
    ])
  })

  await t.test('is recorded after a refusal with the hash of a large body', async (t) => {
    const body = new CapturedBody({ hashesRest: true })
    body.add(Buffer.alloc(20_000))
    const describe = (): EndedRequest => ({ ...ended('/a'), attemptHash: body.hashOfRest()! })
    const errors = [new Overloaded()]
    const { recorder, inputs } = recorderWith(async () => {
      const error = errors.shift()
      if (error !== undefined) throw error
    })
    recorder.add(1, { ...captured('/a'), describe }, KEEP)
    await t.rejects(recorder.recorded(1), { code: 'OVERLOADED' })
    await recorder.recorded(1)
    t.same(inputs[1], inputs[0])
  })

  await t.test('is waited for by each of several readers', async (t) => {
    const ends: Array<() => void> = []
    const { recorder } = recorderWith(async () => { await new Promise<void>((resolve) => { ends.push(resolve) }) })
    recorder.add(1, captured('/a'), KEEP)
    const first = recorder.recorded(1)
    await eventually(() => ends.length === 1)
    recorder.add(1, captured('/b'), KEEP)
    let returned = 0
    const readers = [1, 2].map(async () => {
      await recorder.recorded(1)
      returned++
    })
    ends[0]!()
    await first
    await eventually(() => ends.length === 2)
    t.equal(returned, 0, 'while /b is being recorded')
    ends[1]!()
    await Promise.all(readers)
    t.equal(ends.length, 2)
  })

  await t.test('costs its account the time in which it is described', async (t) => {
    const { recorder, charged } = recorderWith(async () => {})
    const describe = (): EndedRequest => {
      const end = performance.now() + 50
      while (performance.now() < end) continue
      return ended('/a')
    }
    recorder.add(2, { ...captured('/a'), describe }, KEEP)
    await recorder.recorded(2)
    t.equal(charged.length, 1)
    const [[account, ms]] = charged as [Tried['charged'][number]]
    t.equal(account, 2)
    t.ok(ms >= 50, `${ms} ms`)
  })

  await t.test('ends with its account', async (t) => {
    const { recorder, inputs } = recorderWith(async () => { throw new Unauthorized('gone') })
    recorder.add(1, captured('/a'), KEEP)
    await recorder.recorded(1)
    await recorder.recorded(1)
    t.equal(inputs.length, 1)
  })

  await t.test('is recorded without a reader', async (t) => {
    const { recorder, inputs } = recorderWith(async () => {})
    recorder.add(1, captured('/a'), KEEP)
    await eventually(() => inputs.length === 1)
    t.equal(inputs[0]!.requests.length, 1)
    // More than the journal keeps gather longer.
    for (let i = 0; i < 300; i++) recorder.add(1, captured(`/${i}`), 100)
    await eventually(() => inputs.length === 2)
    t.equal(inputs[1]!.requests.at(-1)!.facts.path, '/299')
    await recorder.close()
  })

  await t.test('is recorded while more and more come than the journal keeps', async (t) => {
    const { recorder, inputs } = recorderWith(async () => {})
    const sending = setInterval(() => {
      for (let i = 0; i < 300; i++) recorder.add(1, captured(`/${i}`), 100)
    }, 20)
    t.teardown(() => { clearInterval(sending) })
    await eventually(() => inputs.length > 0)
    t.same(inputs[0]!.requests.length, 250, 'more than one transaction records wait')
    clearInterval(sending)
    await recorder.close()
  })

  await t.test('gathers again after a long transaction', async (t) => {
    let ended = 0
    let pause = NaN
    const { recorder, inputs } = recorderWith(async () => {
      if (ended > 0) {
        pause = performance.now() - ended
        return
      }
      await sleep(500)
      ended = performance.now()
    })
    const sending = setInterval(() => {
      // None is too old.
      for (let i = 0; i < 300; i++) recorder.add(1, { ...captured(`/${i}`), endedAt: Infinity }, 100)
    }, 20)
    t.teardown(() => { clearInterval(sending) })
    await eventually(() => inputs.length > 1)
    clearInterval(sending)
    t.ok(pause > 2_900, `the second transaction begins ${pause} ms after the first one`)
    await recorder.close()
  })
})

t.test('the journal shows how many requests were dropped', async (t) => {
  const { app, openAccount } = await startApp(t)
  const ada = await openAccount()
  await turnOn(ada)
  const { recordRequests } = await import('../../src/journal/commands.ts')
  const account = ada.account!
  await app.commit(recordRequests, { account, requests: [ended('/a')], dropped: 3 }, { account })
  t.match((await ada.get('/lab/journal')).body, { requests: 1, dropped: 3 })
})
