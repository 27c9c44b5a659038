import t from 'tap'
import { streakAfter, type FailureStreak } from '../../src/deliveries/failure-streak.ts'
import type { DeliveryResult } from '../../src/monitoring/instrumentation.ts'
import { attemptsOf, backlog, becomes, send, subscribed } from '../support/delivery.ts'
import { eventually } from '../support/receiver.ts'

const DAY_S = 86_400

t.test('a streak of failures is long at the fiftieth, a day after the first', async (t) => {
  const at = (second: number): string => new Date(Date.UTC(2026, 0, 1) + second * 1000).toISOString()
  const streakOf = (attempts: Array<[result: DeliveryResult, second: number]>): FailureStreak =>
    attempts.reduce<FailureStreak>((streak, [result, second]) =>
      streakAfter(streak, { result, attempt: { at: at(second) } }),
    { failures: 0, failingSince: null, hasFailedForLong: false })
  const failures = (count: number): Array<['retry', number]> => Array.from({ length: count }, () => ['retry', 0])
  t.match(streakOf([...failures(49), ['exhausted', DAY_S]]), { failures: 50, hasFailedForLong: true })
  t.match(streakOf([...failures(48), ['exhausted', DAY_S]]), { failures: 49, hasFailedForLong: false })
  t.match(streakOf([...failures(60), ['retry', DAY_S - 1]]), { failingSince: at(0), hasFailedForLong: false })
  t.match(streakOf([...failures(49), ['accepted', 1], ['retry', DAY_S]]),
    { failures: 1, failingSince: at(DAY_S), hasFailedForLong: false })
})

t.test('an event that is no longer stored is no failure of the receiver', async (t) => {
  const { ada, ids: [id = ''], path, deliver } = await backlog(t, 1)
  await ada.post('/lab/clock/advance', { seconds: 31 * DAY_S })
  t.equal((await ada.get('/events')).headers['event-id'], '2')
  const { app } = await deliver()
  await becomes(ada, id, 'failed')
  t.match(await attemptsOf(ada, path), [{ error: 'The event is no longer stored' }])
  t.match(await app.database.prisma.webhook.findFirst(), { failures: 0, failingSince: null })
})

t.test('a webhook that failed 50 times in a row over a day is disabled, as by a 410', async (t) => {
  const { ada, receiver, path } = await subscribed(t, { events: ['message.created'] })
  receiver.respond = (response) => { response.writeHead(500).end() }
  const ids = await Promise.all(Array.from({ length: 50 }, async (_, i) => await send(ada, `${i}`)))
  await eventually(async () => (await attemptsOf(ada, path))[0]?.eventId > 0 && receiver.received.length >= 50)
  await eventually(async () => (await ada.get(`/messages/${ids[49]!}`)).body.status === 'processing')
  const before = await ada.get(path)
  t.equal(before.body.enabled, true, 'after 50 failures, but not yet a day')

  // The retries of all messages become due by the clock of the store.
  await ada.post('/lab/clock/advance', { seconds: DAY_S })
  await eventually(async () => !(await ada.get(path)).body.enabled)
  t.not((await ada.get(path)).headers.etag, before.headers.etag)
  for (const id of ids) await eventually(async () => (await ada.get(`/messages/${id}`)).body.status === 'failed')

  t.equal((await ada.patch(path, { enabled: true })).status, 200)
  const count = receiver.received.length
  await send(ada)
  await receiver.until(count + 1)
  await eventually(async () => (await attemptsOf(ada, path))[0].eventId === receiver.received.at(-1)?.event.id)
  t.equal((await ada.get(path)).body.enabled, true, 'an owner who enables it gives it a new start')
})
