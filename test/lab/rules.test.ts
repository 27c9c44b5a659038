// Only on SQLite: calls pure functions.

import t from 'tap'
import { judge, offsetAfter, versionFloor, type OpenFault, type Target } from '../../src/lab/rules.ts'

const NOW = '2026-11-21T10:00:00.000Z'
const LIST: Target = { operation: 'listPets', isOrdinary: true, keyId: 1 }

function fault (fields: Partial<OpenFault>): OpenFault {
  const counters = { passed: 0, spared: 0, hits: 0 }
  const lasting = { endsAt: null, rate: null, seed: null }
  return { id: 1, operation: 'listPets', keyId: null, after: 0, times: 1, ...lasting, ...counters, ...fields }
}

t.test('a fault lets `after` requests pass and hits the next `times`, also of one group', async (t) => {
  for (const [after, times] of [[0, 1], [0, 3], [2, 1], [2, 2]] as const) {
    const faults = [fault({ after, times })]
    const hits = Array.from({ length: 6 }, () => judge(faults, LIST, NOW)?.id)
    t.same(hits, Array.from({ length: 6 }, (_, i) => i >= after && i < after + times ? 1 : undefined), `${after}, ${times}`)
    t.match(faults[0], { passed: after, hits: times })
  }
})

t.test('the oldest fault hits, and younger ones do not count its request', async (t) => {
  const faults = [fault({ id: 1, after: 1 }), fault({ id: 2 }), fault({ id: 3, after: 1 })]
  t.same(Array.from({ length: 4 }, () => judge(faults, LIST, NOW)?.id), [2, 1, undefined, 3])
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
  ] as const) t.equal(judge([fault(fields)], target, NOW) !== undefined, isHit, JSON.stringify([fields, target]))
})

t.test('a fault that lasts hits until it ends', async (t) => {
  const faults = [fault({ after: 1, times: 2 ** 53 - 1, endsAt: NOW })]
  const at = (now: string) => judge(faults, LIST, now)?.id
  const before = '2026-11-21T09:59:59.999Z'
  t.same([at(before), at(before), at(before), at(NOW)], [undefined, 1, 1, undefined])
  t.match(faults[0], { passed: 1, hits: 2 })
})

t.test('a rate selects the same requests in every run, and others with another seed', async (t) => {
  const hitsOf = (fields: Partial<OpenFault>): string => {
    const faults = [fault({ times: 2 ** 53 - 1, ...fields })]
    return Array.from({ length: 1_000 }, () => judge(faults, LIST, NOW) === undefined ? '.' : 'x').join('')
  }
  const first = hitsOf({ rate: 0.3, seed: 7 })
  t.ok(first.startsWith('xx.....x..xx..x.x.x'), first)
  t.equal(hitsOf({ rate: 0.3, seed: 7 }), first)
  t.equal(hitsOf({ rate: 0.3, seed: 7, after: 10 }), `${'.'.repeat(10)}${first.slice(0, -10)}`)
  t.not(hitsOf({ rate: 0.3, seed: 8 }), first)
  t.equal(hitsOf({ rate: 1, seed: 7 }), 'x'.repeat(1_000))
  for (const rate of [0.01, 0.3, 0.9]) {
    const shares = [0, 1, 2, 4_294_967_295].map((seed) => hitsOf({ rate, seed }).replaceAll('.', '').length / 1_000)
    for (const share of shares) t.ok(Math.abs(share - rate) < 0.06, `${share} for ${rate}`)
  }
  t.equal(hitsOf({ rate: 0.3, seed: 7, times: 5 }).replaceAll('.', '').length, 5)
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
