// Only on SQLite: calls a pure function.

import t from 'tap'
import { classifyResponse, nextAttemptAt, retryAfterOf } from '../../src/deliveries/retry-policy.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

t.test('pauses grow, and end after about a day', async (t) => {
  for (const random of [0, 0.5, 1]) {
    let now = 0
    let last = 0
    let attempts = 1
    for (;; attempts++) {
      const at = nextAttemptAt({ attempts, now, expiresAt: DAY, retryAfter: 0, random })
      if (at === undefined) break
      t.ok(at - now > last, `${attempts}: ${(at - now) / 1_000} s`)
      last = at - now
      now = at
    }
    t.equal(attempts, 11)
    t.ok(now > 18 * HOUR && now <= DAY, `${now / HOUR} hours`)
  }
})

t.test('a receiver may ask for longer pauses, up to the expiry', async (t) => {
  t.equal(nextAttemptAt({ attempts: 1, now: 0, expiresAt: DAY, retryAfter: HOUR, random: 0 }), HOUR)
  t.equal(nextAttemptAt({ attempts: 1, now: 0, expiresAt: DAY, retryAfter: 1_000, random: 0 }), 5_000)
  t.equal(nextAttemptAt({ attempts: 1, now: 0, expiresAt: DAY, retryAfter: 3 * DAY, random: 0 }), DAY)
  t.equal(nextAttemptAt({ attempts: 2, now: DAY, expiresAt: DAY, retryAfter: 3 * DAY, random: 0 }), undefined)
})

t.test('Retry-After is a number of seconds or a date', async (t) => {
  const now = Date.parse('2026-11-21T10:00:00Z')
  for (const [field, ms] of [
    [undefined, 0], ['', 0], ['0', 0], ['120', 120_000], ['-1', 0], ['1.5', 0], ['soon', 0],
    ['Sat, 21 Nov 2026 10:01:00 GMT', 60_000], ['Sat, 21 Nov 2026 09:00:00 GMT', 0]
  ] as const) t.equal(retryAfterOf(field, now), ms, String(field))
})

t.test('a status is accepted, gone or refused', async (t) => {
  for (const status of [200, 201, 202, 204, 299]) t.equal(classifyResponse(status), 'accepted', `${status}`)
  for (const status of [undefined, 0, 101, 199, 300, 301, 302, 307, 308, 400, 404, 429, 500, 503, 999]) {
    t.equal(classifyResponse(status), 'refused', `${status}`)
  }
  t.equal(classifyResponse(410), 'gone')
})
