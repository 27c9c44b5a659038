// Only on SQLite: calls pure functions.

import t from 'tap'
import { countRequest, currentWindows, type Arrival, type Limit, type Window } from '../../src/limits/rules.ts'

const LIMIT: Limit = { requests: 2, windowSeconds: 10, retryAfter: 'seconds' }

/** Returns a function that counts a request of one client at a time, in ms. */
function counting (limit: Partial<Limit> = {}, windows: Window[] = []) {
  return (now: number, fields: Partial<Arrival> = {}) =>
    countRequest({ ...LIMIT, ...limit }, windows, { client: 0, arrivedAt: now, now, offset: 0, ...fields })
}

t.test('a window begins with its first request and ends after its length', async (t) => {
  const count = counting()
  const refusals = [5_000, 5_001, 5_002, 14_999, 15_000, 15_001, 15_002].map((now) => count(now).isRefused)
  t.same(refusals, [false, false, true, true, false, false, true])
})

t.test('a window ends within twice its length when the clock of the machine is set back', async (t) => {
  for (const back of [9_000, 11_000, 7_200_000]) {
    const count = counting({ requests: 1 })
    const start = 10_000_000
    t.notOk(count(start).isRefused)
    t.equal(count(start - back).isRefused, back < 10_000, `set back by ${back} ms`)
    t.notOk(count(start - back + 20_000).isRefused)
  }
})

t.test('a request is told what is left, and until when', async (t) => {
  const count = counting()
  t.match(count(5_000), { remaining: 1, seconds: 10, date: 15_000 })
  t.match(count(5_500), { remaining: 0, seconds: 10, date: 15_000 })
  t.match(count(14_001), { remaining: 0, seconds: 1, date: 15_000 })
  t.match(counting()(5_500), { seconds: 10, date: 16_000 }, 'a date in whole seconds, not earlier')
  t.match(counting()(5_000_000, { offset: 1_000_000 }), { date: 4_010_000 }, 'a date in real time')
  t.match(count(4_000), { seconds: 10 }, 'never longer than a window, whatever another machine shows')
})

t.test('a request is early before the time that it was told, if it can know', async (t) => {
  const at = [0, 1, 2, 5_000, 10_001, 10_003]
  const early = (retryAfter: Limit['retryAfter']): boolean[] => {
    const count = counting({ retryAfter })
    return at.map((now) => count(now).isEarly)
  }
  // Refused at 2 and at 5,000, and told 10 s and 5 s.
  t.same(early('seconds'), [false, false, false, true, false, false])
  t.same(early('date'), [false, false, false, true, false, false])
  t.same(early('none'), at.map(() => false))

  const count = counting({ requests: 1 })
  count(0)
  t.ok(count(1_000).isRefused)
  t.notOk(count(1_001, { arrivedAt: 999 }).isEarly, 'it came before the refusal')
  t.ok(count(1_001).isEarly)
})

t.test('clients have windows of their own, and those that are over are forgotten', async (t) => {
  const windows: Window[] = []
  const count = counting({ requests: 1 }, windows)
  t.same([1, 2, 1, 2].map((client) => count(0, { client }).isRefused), [false, false, true, true])
  t.equal(currentWindows(LIMIT, windows, 9_999).length, 2)
  t.equal(currentWindows(LIMIT, windows, 10_000).length, 0)
  for (let client = 3; client < 200; client++) count(client, { client })
  const kept = currentWindows(LIMIT, windows, 200)
  t.same([kept.length, kept.at(-1)!.client], [100, 199])
})
