import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually, openReceiver, type Receiver } from '../support/receiver.ts'
import { openQueue } from './queue.ts'
import type { Stage, Store } from './harness.ts'
import { verify } from './verify.ts'
import { startWorkload } from './workload.ts'

const DELIVERING = { DELIVERY: 'true', WEBHOOKS_ALLOW_PRIVATE: 'true' }

/** Calls to one webhook at a time. */
const AT_ONCE = 8

/** What a killed worker had taken is anybody's again after this long, in ms; and a little. */
const LEASE_MS = 45_000 + 5_000

/** Everything is delivered within this, in ms, once nothing is in the way. */
const DONE_MS = 60_000

/** The first pause after a failure, in ms; only longer ones follow. */
const PAUSE_MS = 5_000

/**
 * Messages on their way to a receiver while the service is killed, while the receiver fails half of the
 * time, and while it is away: every message that was acknowledged arrives, at least once, and ends
 * `delivered`. Pauses of hours are shortened in the rows of the queue, as an operator might.
 */
export async function deliveries (stage: Stage): Promise<void> {
  const { quick, report, freshUrl, start, openStore, atEnd } = stage
  const url = await freshUrl()
  const service = await start({ DATABASE_URL: url, ...DELIVERING })
  const store = await openStore(() => service.port)
  const queue = await openQueue(url, store.account)
  atEnd(queue.close)
  const receiver = await openReceiver({ teardown: atEnd })
  const { body: { secret } } = await store.client.send({ method: 'POST', path: '/webhooks', body: { url: receiver.url, events: ['message.created'] } })
  receiver.secrets = [secret]

  await killed()
  await failing()
  await away()
  await verify(url, store, report)

  async function killed (): Promise<void> {
    receiver.respond = (response) => { setTimeout(() => { response.writeHead(204).end() }, randomInt(0, 20)) }
    const load = startWorkload(store, { workers: 16, retry: true, pause: 10 })
    const rounds = quick ? 2 : 12
    for (let round = 1; round <= rounds; round++) {
      const before = receiver.received.length
      // PostgreSQL may end what a killed process began after its leases were ended here: then one is waited for.
      await receiver.until(before + randomInt(1, 60), LEASE_MS + DONE_MS)
      await service.kill()
      report.rounds++
      // Once, the leases of the killed one are waited for; in the other rounds they end here.
      if (quick || round < rounds) await queue.endLeases()
      await service.start()
    }
    const lost = await load.stop()
    if (lost > 0) report.violations.push(`${lost} clients were never answered`)
    await allArrive('killed', LEASE_MS + DONE_MS)
  }

  async function failing (): Promise<void> {
    const calls = new Map<string, number[]>()
    receiver.respond = (response, { id, at }) => {
      const earlier = calls.get(id) ?? []
      calls.set(id, [...earlier, at])
      // Not to the end of its attempts: what fails for good has failed.
      response.writeHead(earlier.length < (quick ? 2 : 6) && Math.random() < 0.5 ? 500 : 204).end()
    }
    const since = receiver.received.length
    await send(quick ? 60 : 400, 'failing')
    await eventually(() => calls.size === (quick ? 60 : 400), DONE_MS, () => `only ${calls.size} calls came`)
    // The first pauses pass by themselves.
    await sleep(quick ? 0 : 12_000)
    for (const times of calls.values()) {
      const [first, second] = times as [number, number?]
      if (second !== undefined && second - first < PAUSE_MS - 100) report.violations.push(`failing: a call was repeated after ${second - first} ms`)
    }
    await allArrive('failing', DONE_MS * 2, queue.endPauses)
    report.notes.push(`failing half of the time: ${receiver.received.length - since} calls for ${calls.size} messages`)
    report.rounds++
  }

  async function away (): Promise<void> {
    const backlog = quick ? 60 : 400
    await receiver.close()
    await send(backlog, 'away')
    await eventually(async () => await queue.tried() >= backlog, DONE_MS, () => 'not every message is tried while the receiver is away')
    await service.kill()
    await queue.endLeases()

    // Back, and the service starts with everything due at once.
    receiver.respond = (response) => { setTimeout(() => { response.writeHead(204).end() }, 25) }
    receiver.most = 0
    const since = receiver.received.length
    await receiver.reopen()
    await service.start()
    await allArrive('away', DONE_MS)
    const calls = receiver.received.slice(since)
    const numbers = calls.map(({ event }) => event.id as number)
    if (receiver.most > AT_ONCE) report.violations.push(`away: ${receiver.most} calls at a time`)
    if (numbers.some((id, i) => i >= AT_ONCE && numbers[i - AT_ONCE]! > id)) report.violations.push('away: the backlog did not start in the order of its events')
    if (new Set(numbers).size !== numbers.length) report.violations.push('away: what was accepted was sent again')
    const seconds = (calls.at(-1)!.at - calls[0]!.at) / 1_000
    report.notes.push(`away: ${calls.length} calls after the return in ${seconds.toFixed(1)} s, ${receiver.most} at a time`)
    report.rounds++
  }

  async function send (count: number, name: string): Promise<void> {
    await Promise.all(Array.from({ length: count }, async (_, i) => {
      const label = `${name} ${i}`
      const act = { kind: 'message' as const, label, key: label.replace(' ', '-'), method: 'POST', path: '/messages', body: { message: label } }
      store.ledger.note(act, await store.client.send({ ...act, headers: { 'idempotency-key': act.key } }))
    }))
  }

  async function allArrive (name: string, ms: number, meanwhile: () => Promise<void> = async () => {}): Promise<void> {
    const deadline = Date.now() + ms
    for (;;) {
      const open = await queue.undelivered()
      if (open === 0) break
      if (Date.now() > deadline) {
        report.violations.push(`${name}: ${open} messages are not delivered ${ms} ms later`)
        break
      }
      await meanwhile()
      await sleep(200)
    }
    arrived(name, store, receiver)
  }

  /** At least once each, and doubles can be told by `webhook-id`. */
  function arrived (name: string, { ledger }: Store, { received }: Receiver): void {
    const ids = new Map<string, string>()
    for (const { id, event } of received) {
      const message = event.data.message.id as string
      if (ids.has(id) && ids.get(id) !== message) report.violations.push(`${name}: ${id} stands for two messages`)
      ids.set(id, message)
    }
    const messages = new Set(ids.values())
    if (messages.size !== ids.size) report.violations.push(`${name}: a message came under two ids`)
    for (const [label, { id, acknowledged }] of ledger.messages) {
      if (acknowledged === true && !messages.has(String(id))) report.violations.push(`${name}: message ${label} never arrived`)
    }
    report.notes.push(`${name}: ${received.length} calls so far, ${ids.size} of them different`)
  }
}
