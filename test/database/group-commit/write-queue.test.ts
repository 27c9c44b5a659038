// Only on SQLite: calls pure functions.

import t from 'tap'
import type { Command, QueuedCommand } from '../../../src/database/group-commit/command.ts'
import { WriteQueue } from '../../../src/database/group-commit/write-queue.ts'

const COMMANDS: Record<string, Command<any, any>> = {
  erase: { name: 'erase', runsAlone: true, run: async () => ({ record: undefined }) },
  deleteAccount: { name: 'deleteAccount', runsAlone: 'with its kind', run: async () => ({ record: undefined }) }
}

/** Returns a write of an account; `name` stands for its command. */
function write (account: number | null, name = 'add', since = 0): QueuedCommand {
  const command = COMMANDS[name] ?? { name, run: async () => ({ record: undefined }) }
  return { command, input: {}, context: { account }, since, resolve () {}, reject () {} }
}

const always = (): boolean => true

t.test('an account that fills the queue delays no other', async (t) => {
  const queue = new WriteQueue(1_000)
  const flood = Array.from({ length: 200 }, () => write(1))
  const [second, third, later] = [write(2), write(3), write(2)]
  for (const entry of [...flood, second, third, later]) queue.add(entry)
  t.same(queue.takeGroup(5, always), [flood[0], second, third, flood[1], later])
  t.same(queue.takeGroup(2, always), flood.slice(2, 4))
  t.equal(queue.size, 196)
})

t.test('a queue with room in the next group keeps the order of arrival', async (t) => {
  const queue = new WriteQueue(100)
  const entries = [write(1), write(1), write(2), write(1)]
  for (const entry of entries) queue.add(entry)
  t.same(queue.takeGroup(4, always), entries)
  t.equal(queue.oldestSince, undefined)
})

t.test('one account has a quarter of the queue, and the others have the rest', async (t) => {
  const queue = new WriteQueue(8)
  for (let i = 0; i < 2; i++) queue.add(write(1))
  t.throws(() => { queue.add(write(1)) }, { code: 'OVERLOADED' })
  for (const account of [2, 2, 3, 3, 4, 4]) queue.add(write(account))
  queue.add(write(5))
  t.throws(() => { queue.add(write(5)) }, { code: 'OVERLOADED' }, 'the whole queue is full')
  queue.add(write(6))
  t.equal(queue.size, 10, 'but an account with nothing waiting is admitted')
})

t.test('sign-ups have a share of their own beside the writes of the service', async (t) => {
  const queue = new WriteQueue(8)
  for (let i = 0; i < 2; i++) queue.add(write(null, 'createAccount'))
  t.throws(() => { queue.add(write(null, 'createAccount')) }, { code: 'OVERLOADED' })
  queue.add(write(null, 'claimDeliveries'))
  t.equal(queue.size, 3)
})

t.test('a write that may not start yet waits, and late writes leave the queue', async (t) => {
  const queue = new WriteQueue(100)
  const [blocked, free, late] = [write(1, 'blocked', 5), write(1, 'add', 6), write(2, 'add', 7)]
  for (const entry of [blocked, free]) queue.add(entry)
  t.same(queue.takeGroup(10, ({ command }) => command.name !== 'blocked'), [free])
  queue.add(late)
  t.same(queue.takeLate(4), [])
  t.same(queue.takeLate(5), [blocked])
  t.equal(queue.oldestSince, 7)
})

t.test('an account has no more writes in a group than all others, if others wait', async (t) => {
  const queue = new WriteQueue(1_000)
  const crowd = Array.from({ length: 60 }, () => write(1))
  const others = Array.from({ length: 20 }, (_, i) => write(i % 2 + 2))
  const signUps = Array.from({ length: 30 }, () => write(null, 'createAccount'))
  for (const entry of [...crowd, ...signUps]) queue.add(entry)
  queue.add(others[0]!)
  t.same(queue.takeGroup(256, always), [...crowd.slice(0, 16), ...signUps, others[0]], 'sign-ups beside 61 writes')
  for (const entry of others.slice(1)) queue.add(entry)
  t.same(queue.takeGroup(256, always), [...crowd.slice(16, 35), ...others.slice(1)])
  t.same(queue.takeGroup(256, always), crowd.slice(35), 'alone, an account has the whole group')
})

t.test('a command that runs alone waits beside others as long as the last one took, 5 to 100 ms', async (t) => {
  let now = 1_000
  const queue = new WriteQueue(100, () => now)
  const erases = [1, 2, 3, 4, 5, 6].map((account) => write(account, 'erase')) as QueuedCommand[]
  for (const entry of erases) queue.add(entry)
  t.same(queue.takeGroup(10, always), [erases[0]])
  for (const [i, [duration, pause]] of [[20, 20], [1, 5], [3_000, 100]].entries()) {
    queue.endAlone(duration!)
    const others = [write(7), write(7)]
    for (const entry of others) queue.add(entry)
    t.same(queue.takeGroup(10, always), others, 'the others have their turn')
    now += pause! - 1
    t.same(queue.takeGroup(10, always), [])
    t.equal(queue.aloneDelay, 1)
    now += 1
    t.same(queue.takeGroup(10, always), [erases[i + 1]])
    t.equal(queue.aloneDelay, Infinity)
  }
  queue.endAlone(1)
  t.same(queue.takeGroup(10, always), [erases[4]], 'without others, none waits')
  queue.endAlone(1)
  const own = write(5)
  queue.add(own)
  t.same(queue.takeGroup(10, always), [own])
  t.same(queue.takeGroup(10, always), [erases[5]], 'nor beside writes of its own account')
})

t.test('a command that runs alone waits 5 ms for one in flight', async (t) => {
  let now = 1_000
  const queue = new WriteQueue(100, () => now)
  const [first, second, other] = [write(1, 'erase'), write(2, 'erase'), write(3)]
  for (const entry of [first, second, other]) queue.add(entry)
  t.same([queue.takeGroup(10, always), queue.takeGroup(10, always)], [[first], [other]])
  t.same(queue.takeGroup(10, always), [])
  now += 5
  t.same(queue.takeGroup(10, always), [second])
})

t.test('a command that runs with its kind shares a group with no other command', async (t) => {
  let now = 1_000
  const queue = new WriteQueue(100, () => now)
  const [erase, add] = [write(5, 'erase'), write(5)]
  const deletions = [1, 2, 3].map((account) => write(account, 'deleteAccount'))
  for (const entry of [deletions[0]!, erase, deletions[1]!, add, deletions[2]!]) queue.add(entry)
  t.same(queue.takeGroup(10, always), deletions)
  t.same(queue.takeGroup(10, always), [add])
  now += 5
  t.same(queue.takeGroup(10, always), [erase])
  const [second, last] = [write(6, 'erase'), write(7, 'deleteAccount')]
  for (const entry of [second, last]) queue.add(entry)
  t.same(queue.takeGroup(10, always), [second])
  t.same(queue.takeGroup(10, always), [last])
})
