import t from 'tap'
import { isPublicAddress, classifyResponse, literalAddress, nextAttemptAt, retryAfterOf } from '../../src/deliveries/retry-policy.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

t.test('pauses grow, and end after about a day', async (t) => {
  for (const random of [0, 0.5, 1]) {
    let now = 0
    let last = 0
    let attempts = 1
    for (;; attempts++) {
      const at = nextAttemptAt({ attempts, now, giveUpAt: DAY, retryAfter: 0, random })
      if (at === undefined) break
      t.ok(at - now > last, `${attempts}: ${(at - now) / 1_000} s`)
      last = at - now
      now = at
    }
    t.equal(attempts, 11)
    t.ok(now > 18 * HOUR && now <= DAY, `${now / HOUR} hours`)
  }
})

t.test('a receiver may ask for longer pauses, but not for more than the day', async (t) => {
  t.equal(nextAttemptAt({ attempts: 1, now: 0, giveUpAt: DAY, retryAfter: HOUR, random: 0 }), HOUR)
  t.equal(nextAttemptAt({ attempts: 1, now: 0, giveUpAt: DAY, retryAfter: 1_000, random: 0 }), 5_000)
  t.equal(nextAttemptAt({ attempts: 1, now: 0, giveUpAt: DAY, retryAfter: 3 * DAY, random: 0 }), DAY)
  t.equal(nextAttemptAt({ attempts: 2, now: DAY, giveUpAt: DAY, retryAfter: 3 * DAY, random: 0 }), undefined)
})

t.test('Retry-After is seconds or a date', async (t) => {
  const now = Date.parse('2026-11-21T10:00:00Z')
  for (const [field, ms] of [
    [undefined, 0], ['', 0], ['0', 0], ['120', 120_000], ['-1', 0], ['1.5', 0], ['soon', 0],
    ['Sat, 21 Nov 2026 10:01:00 GMT', 60_000], ['Sat, 21 Nov 2026 09:00:00 GMT', 0]
  ] as const) t.equal(retryAfterOf(field, now), ms, String(field))
})

t.test('a status is taken, gone or refused', async (t) => {
  for (const status of [200, 201, 202, 204, 299]) t.equal(classifyResponse(status), 'accepted', `${status}`)
  for (const status of [undefined, 0, 101, 199, 300, 301, 302, 307, 308, 400, 404, 429, 500, 503, 999]) t.equal(classifyResponse(status), 'refused', `${status}`)
  t.equal(classifyResponse(410), 'gone')
})

t.test('an address is public or it is not', async (t) => {
  for (const address of ['1.1.1.1', '8.8.8.8', '172.15.255.255', '172.32.0.1', '192.167.0.1', '2606:4700::1111', '::ffff:8.8.8.8']) t.equal(isPublicAddress(address), true, address)
  for (const address of [
    '127.0.0.1', '127.255.255.254', '0.0.0.0', '10.1.2.3', '172.16.0.1', '172.31.255.255', '192.168.0.1', '169.254.169.254', '100.64.0.1', '100.127.255.255',
    '192.0.0.8', '192.0.2.1', '198.18.0.1', '198.51.100.1', '203.0.113.1', '224.0.0.1', '255.255.255.255', '::', '::1', '::ffff:10.0.0.1', '::ffff:a9fe:a9fe',
    '::10.0.0.1', '64:ff9b::a00:1', '64:ff9b:1::1', '2002:a00:1::', '2001::1', '2001:db8::1', 'fe80::1', 'febf::1', 'fc00::1', 'fdff::1', 'fec0::1', 'ff02::1', '100::1', 'nonsense', ''
  ]) t.equal(isPublicAddress(address), false, address)
})

t.test('an address is found in every spelling that a URL has for it', async (t) => {
  for (const [url, address] of [
    ['http://127.0.0.1/', '127.0.0.1'], ['http://2130706433/', '127.0.0.1'], ['http://0x7f.1/', '127.0.0.1'], ['http://127.1:80', '127.0.0.1'], ['http://①②⑦.⓪.⓪.①/', '127.0.0.1'],
    ['http://[::1]:8080/', '::1'], ['http://user@10.0.0.1/', '10.0.0.1'], ['http://localhost/', undefined], ['https://example.com./', undefined]
  ] as const) t.equal(literalAddress(url), address, url)
})
