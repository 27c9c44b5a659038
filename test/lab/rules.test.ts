// Only on SQLite: calls pure functions.

import t from 'tap'
import { judge, offsetAfter, versionFloor, type OpenFault, type Target } from '../../src/lab/rules.ts'

const LIST: Target = { operation: 'listPets', isOrdinary: true, keyId: 1 }

function fault (fields: Partial<OpenFault>): OpenFault {
  return { id: 1, operation: 'listPets', keyId: null, after: 0, times: 1, passed: 0, hits: 0, ...fields }
}

t.test('a fault lets `after` requests pass and hits the next `times`, also of one group', async (t) => {
  for (const [after, times] of [[0, 1], [0, 3], [2, 1], [2, 2]] as const) {
    const faults = [fault({ after, times })]
    const hits = Array.from({ length: 6 }, () => judge(faults, LIST)?.id)
    t.same(hits, Array.from({ length: 6 }, (_, i) => i >= after && i < after + times ? 1 : undefined), `${after}, ${times}`)
    t.match(faults[0], { passed: after, hits: times })
  }
})

t.test('the oldest fault hits, and younger ones do not count its request', async (t) => {
  const faults = [fault({ id: 1, after: 1 }), fault({ id: 2 }), fault({ id: 3, after: 1 })]
  t.same(Array.from({ length: 4 }, () => judge(faults, LIST)?.id), [2, 1, undefined, 3])
  t.same(faults.map(({ passed, hits }) => [passed, hits]), [[1, 1], [0, 1], [1, 1]])
})

t.test('a fault hits what it names', async (t) => {
  for (const [fields, target, isHit] of [
    [{ operation: '*' }, LIST, true],
    [{ operation: '*' }, { ...LIST, isOrdinary: false }, false],
    [{ operation: 'getPet' }, LIST, false],
    [{ keyId: 1 }, LIST, true],
    [{ keyId: 2 }, LIST, false],
    [{ keyId: 1 }, { ...LIST, keyId: undefined }, false]
  ] as const) t.equal(judge([fault(fields)], target) !== undefined, isHit, JSON.stringify([fields, target]))
})

t.test('each restore has a floor above the versions since the last one', async (t) => {
  t.ok(versionFloor(1) > 1_000_000_000)
  t.ok(versionFloor(2) - versionFloor(1) > 1_000_000_000)
  t.ok(Number.isSafeInteger(versionFloor(1_000_000)))
})

t.test('a clock moves ahead, and not beyond its end', async (t) => {
  const now = 10_500
  const move = (advance: Parameters<typeof offsetAfter>[2], offset = 5): ReturnType<typeof offsetAfter> =>
    offsetAfter(now, offset, advance, 100_000)
  t.equal(move({ seconds: 3 }), 8)
  t.equal(move({ to: 20_000 }), 10, 'the clock shows the time or a little more')
  t.equal(move({ to: 15_500 }), 'not later')
  t.equal(move({ to: 15_501 }), 6)
  t.equal(move({ seconds: 84 }), 89)
  t.equal(move({ seconds: 85 }), 'out of range')
  t.equal(move({ to: 100_000 }), 89)
})
