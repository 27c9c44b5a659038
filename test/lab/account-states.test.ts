import t from 'tap'
import type { Test } from 'tap'
import type { Read } from '../../src/database/reads/query.ts'
import { createAccountStates, type AccountStates } from '../../src/lab/account-states.ts'
import { startApp, type TestApp } from '../support/app.ts'
import { setClockAhead } from '../support/machine-clock.ts'
import { eventually } from '../support/receiver.ts'
import { turnOn } from '../journal/fixture.ts'
import { setLimits } from '../limits/fixture.ts'
import { newFault } from './fixture.ts'

const REFUSED = { operation: 'listPets', effect: { type: 'refuse', status: 500 } }
const LIST_PETS = { operation: 'listPets', isOrdinary: true, keyId: undefined }

/** What another process knows, which hears of changes by its polls alone. */
interface OtherProcess {
  states: AccountStates
  /** The number of polls for changes that have returned. */
  polls: () => number
  /** The accounts whose states it read, in order. */
  reads: number[]
}

async function startOther (t: Test, { app }: TestApp): Promise<OtherProcess> {
  const reads: number[] = []
  let polls = 0
  const read: Read = async (query, input) => {
    const { id, since } = input as { id?: number, since?: string }
    if (id !== undefined) reads.push(id)
    const row = await app.read(query, input)
    if (since !== undefined) polls++
    return row
  }
  const states = createAccountStates({ read, clocks: app.clocks, log: app.log, pollMs: 20 })
  t.teardown(states.stop)
  await states.start()
  return { states, polls: () => polls, reads }
}

t.test('what a process knows of the lab of accounts', async (t) => {
  const running = await startApp(t)
  const { app, openAccount } = running
  const { prisma } = app.database

  await t.test('a poll reads the state of an account once for each of its changes', async (t) => {
    const ada = await openAccount()
    const bob = await openAccount()
    await newFault(bob)
    const { states, polls, reads } = await startOther(t, running)
    await eventually(() => polls() >= 1)
    reads.length = 0
    await newFault(ada, REFUSED)
    await eventually(() => states.mayHit(ada.account!, LIST_PETS))
    const before = polls()
    await eventually(() => polls() >= before + 3)
    t.same(reads, [ada.account])
  })

  await t.test('a poll finds a change whose transaction committed 5 s after it began', async (t) => {
    const { states, polls } = await startOther(t, running)
    const { account } = await openAccount()
    await eventually(() => polls() >= 1)
    const began = new Date(Date.now() - 5_000)
    await prisma.$transaction([
      prisma.fault.create({
        data: {
          accountId: account!, operation: 'listPets', effect: '{"type":"reset"}', after: 0, times: 1, createdAt: began
        }
      }),
      prisma.labState.create({ data: { accountId: account!, changedAt: began } })
    ])
    const before = polls()
    // One may have begun before, and the last has not learned yet what it read.
    await eventually(() => polls() >= before + 3)
    t.ok(states.mayHit(account!, LIST_PETS))
  })

  await t.test('a change is never taken for the one before it, whatever the clocks of machines show', async (t) => {
    const ada = await openAccount()
    await newFault(ada)
    const { states, polls } = await startOther(t, running)
    const ahead = new Date(Date.now() + 5_000)
    await prisma.labState.updateMany({ where: { accountId: ada.account! }, data: { changedAt: ahead } })
    const before = polls()
    await eventually(() => polls() >= before + 2)
    await newFault(ada, REFUSED)
    const { changedAt } = await prisma.labState.findFirstOrThrow({ where: { accountId: ada.account! } })
    t.equal(changedAt.getTime(), ahead.getTime() + 1)
    await eventually(() => states.mayHit(ada.account!, LIST_PETS))
  })

  await t.test('a poll finds the changes before the clock of the machine was set ahead', async (t) => {
    const ada = await openAccount()
    const held: Array<() => void> = []
    const read: Read = async (query, input) => {
      const row = await app.read(query, input)
      if ('since' in input && held.length === 0) await new Promise<void>((resolve) => { held.push(resolve) })
      return row
    }
    const states = createAccountStates({ read, clocks: app.clocks, log: app.log, pollMs: 20 })
    t.teardown(states.stop)
    await states.start()
    await eventually(() => held.length === 1)
    await newFault(ada, REFUSED)
    setClockAhead(t)
    held[0]!()
    await eventually(() => states.mayHit(ada.account!, LIST_PETS))
    t.ok(states.hasFaults(ada.account!))
  })

  await t.test('a read that returns late hides no fault', async (t) => {
    const ada = await openAccount()
    const held: Array<() => void> = []
    const read: Read = async (query, input) => {
      const row = await app.read(query, input)
      if (held.length === 0) await new Promise<void>((resolve) => { held.push(resolve) })
      return row
    }
    const states = createAccountStates({ read, clocks: app.clocks, log: app.log })
    const early = states.refresh(ada.account!)
    await eventually(() => held.length === 1)
    await newFault(ada, REFUSED)
    await states.refresh(ada.account!)
    t.ok(states.mayHit(ada.account!, LIST_PETS))
    held[0]!()
    await early
    t.ok(states.mayHit(ada.account!, LIST_PETS))
  })

  await t.test('nothing of an account that was deleted stays in memory', async (t) => {
    const accounts = await Promise.all(Array.from({ length: 4 }, openAccount))
    const [withFault, withClock, withJournal, withLimits] = accounts
    await newFault(withFault!, REFUSED)
    await withClock!.post('/lab/clock/advance', { seconds: 60 })
    await turnOn(withJournal!)
    await setLimits(withLimits!)
    const { states } = await startOther(t, running)
    t.same(accounts.map(({ account }) => states.knows(account!)), [true, true, true, true])
    for (const account of accounts) await account.delete('/account')
    await eventually(() => app.clocks.movedAccounts().length === 0, 30_000)
    for (const { account } of accounts) await states.refresh(account!)
    t.same(accounts.map(({ account }) => states.knows(account!)), [false, false, false, false])
  })

  await t.test('a fault that is used up costs requests nothing more, in any process', async (t) => {
    const ada = await openAccount()
    await newFault(ada, { ...REFUSED, times: 2 })
    const { states } = await startOther(t, running)
    const announced: number[] = []
    app.onChange(({ lab = [] }) => { announced.push(...lab) })
    await ada.get('/pets')
    t.ok(states.hasFaults(ada.account!))
    t.same(announced, [])
    await ada.get('/pets')
    t.same(announced, [ada.account], 'this process reads its state')
    await eventually(() => !states.hasFaults(ada.account!))
  })

  await t.test('a fault that has ended costs requests nothing more', async (t) => {
    const ada = await openAccount()
    await newFault(ada, { ...REFUSED, forSeconds: 60 })
    const { states } = await startOther(t, running)
    t.ok(states.mayHit(ada.account!, LIST_PETS))
    await ada.post('/lab/clock/advance', { seconds: 60 })
    t.notOk(states.mayHit(ada.account!, LIST_PETS))
    await eventually(() => !states.hasFaults(ada.account!))
  })
})
