// Only on SQLite: checks the search itself; the scenario runs on both databases.

import t from 'tap'
import { findLinearization, findWindow, type Model, type Timed, type Verdict } from './search.ts'

const LIMITS = { timeoutMs: 60_000, maxConfigurations: 100_000 }

/** An operation on a register of numbers. A swap is answered with whether the register had the old value. */
type Operation = Timed & (
  | { kind: 'read', value: number }
  | { kind: 'write', value: number }
  | { kind: 'swap', from: number, to: number, done: boolean }
)

const register: Model<{ value: number }, Operation> = {
  initial: { value: 0 },
  step (state, operation) {
    switch (operation.kind) {
      case 'read': return operation.value === state.value ? state : undefined
      case 'write': return operation.value === state.value ? state : { value: operation.value }
      case 'swap':
        if ((operation.from === state.value) !== operation.done) return undefined
        return operation.done ? { value: operation.to } : state
    }
  },
  isRead: (operation) => operation.kind === 'read' || (operation.kind === 'swap' && !operation.done),
  keyOf: ({ value }) => String(value)
}

const read = (call: number, end: number, value: number): Operation => ({ call, return: end, kind: 'read', value })
const write = (call: number, end: number, value: number): Operation => ({ call, return: end, kind: 'write', value })
const swap = (call: number, end: number, from: number, to: number, done = true): Operation =>
  ({ call, return: end, kind: 'swap', from, to, done })

const decide = (history: Operation[]): Verdict<{ value: number }, Operation>['kind'] =>
  findLinearization(register, history, LIMITS).kind

const LINEARIZABLE: Record<string, Operation[]> = {
  'no operation': [],
  'a read of the value that is there': [read(0, 1, 0)],
  'one after the other': [write(0, 1, 1), read(2, 3, 1), write(4, 5, 2), read(6, 7, 2)],
  'a read during a write sees the old value': [write(0, 10, 1), read(1, 2, 0)],
  'a read during a write sees the new value': [write(0, 10, 1), read(1, 2, 1)],
  'two reads during a write see the old value, then the new one': [write(0, 10, 1), read(1, 2, 0), read(3, 4, 1)],
  'writes at once happen in either order': [write(0, 10, 1), write(0, 10, 2), read(11, 12, 1)],
  'a write of the value that is there happens later': [write(0, 10, 0), write(0, 10, 1), read(11, 12, 0)],
  'a write without an answer happened': [write(0, Infinity, 1), read(5, 6, 1)],
  'a write without an answer happened late': [write(0, Infinity, 1), read(5, 6, 0), read(7, 8, 1)],
  'a write without an answer never happened': [write(0, Infinity, 1), read(5, 6, 0)],
  'one of two swaps from one value is refused': [swap(0, 10, 0, 1), swap(0, 10, 0, 2, false), read(11, 12, 1)],
  'an answer at the moment of a call leaves the order open': [write(0, 5, 1), read(5, 6, 0)]
}

const VIOLATIONS: Record<string, Operation[]> = {
  'a value that was never written': [read(0, 1, 7)],
  'a stale read': [write(0, 1, 1), read(2, 3, 0)],
  'a read of the new value, then of the old one': [write(0, 10, 1), read(1, 2, 1), read(3, 4, 0)],
  'two swaps from one value': [swap(0, 10, 0, 1), swap(0, 10, 0, 2)],
  'a swap that was refused without a reason': [swap(0, 1, 0, 1, false)],
  'an effect before its call': [read(0, 1, 1), write(2, 3, 1)],
  'two readers that see two writes in different orders': [
    write(0, 20, 1), write(0, 20, 2), read(1, 2, 1), read(3, 4, 2), read(5, 6, 1)
  ],
  'a write without an answer that happened twice': [
    write(0, Infinity, 1), read(1, 2, 1), write(3, 4, 2), read(5, 6, 1)
  ]
}

t.test('histories that some order explains', async (t) => {
  for (const [name, history] of Object.entries(LINEARIZABLE)) t.equal(decide(history), 'linearizable', name)
})

t.test('histories that no order explains', async (t) => {
  for (const [name, history] of Object.entries(VIOLATIONS)) t.equal(decide(history), 'violation', name)
})

t.test('the order that is found explains the answers, in the time of the calls', async (t) => {
  const history = [write(0, 10, 1), write(0, 10, 2), read(4, 8, 2), read(11, 12, 1)]
  const verdict = findLinearization(register, history, LIMITS)
  t.equal(verdict.kind, 'linearizable')
  if (verdict.kind !== 'linearizable') return
  t.same(verdict.order.map(({ kind, value }: any) => `${kind} ${value}`), ['write 2', 'read 2', 'write 1', 'read 1'])
  t.same(verdict.state, { value: 1 })
})

t.test('the end of a history can be wrong, too', async (t) => {
  const endsInTwo = { ...register, accepts: ({ value }: { value: number }) => value === 2 }
  t.equal(findLinearization(endsInTwo, [write(0, 10, 1), write(0, 10, 2)], LIMITS).kind, 'linearizable')
  t.equal(findLinearization(endsInTwo, [write(0, Infinity, 2)], LIMITS).kind, 'linearizable')
  t.equal(findLinearization(endsInTwo, [write(0, 1, 2), write(2, 3, 1)], LIMITS).kind, 'violation')
  t.equal(findWindow(endsInTwo, [write(0, 1, 2), write(2, 3, 1)], LIMITS), undefined)
})

t.test('thousands of operations of several clients are decided', async (t) => {
  const history: Operation[] = []
  let value = 0
  for (let i = 0; i < 3_000; i++) {
    const at = i * 10
    if (i % 3 === 0) history.push(write(at, at + 25, ++value))
    // The writes before it may still be in flight, but have happened.
    else history.push(read(at - 2, at + 9, value))
    if (i % 1_000 === 0) history.push(write(at, Infinity, -1))
  }
  t.equal(decide(history), 'linearizable')
  t.equal(decide([...history, read(40_000, 40_001, value - 1)]), 'violation')
})

t.test('the window of a violation ends with the answer that nothing explains', async (t) => {
  const history = [
    write(0, 1, 1), read(2, 3, 1), write(4, 5, 2), write(6, 30, 3), read(8, 9, 1), read(10, 11, 2), read(40, 41, 3)
  ]
  const { culprit, concurrent, before, state } = findWindow(register, history, LIMITS)!
  t.same(culprit, read(8, 9, 1))
  t.same(concurrent.map(({ call }) => call), [6])
  t.same(before.map(({ call }) => call), [0, 2, 4])
  t.same(state, { value: 2 })
  t.equal(findWindow(register, history.filter((operation) => operation !== history[4]), LIMITS), undefined)
})

t.test('a search that takes too long is undecided', async (t) => {
  // All writes are in flight at once, and the last read fits none of them.
  const history = [...Array.from({ length: 24 }, (_, i) => write(0, 100, i + 1)), read(101, 102, 99)]
  t.equal(findLinearization(register, history, { timeoutMs: 60_000, maxConfigurations: 50 }).kind, 'undecided')
  t.equal(findLinearization(register, history, { timeoutMs: -1, maxConfigurations: 1e6 }).kind, 'undecided')
})
