import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually, openReceiver, type Receiver } from '../support/receiver.ts'
import { openQueue } from './queue.ts'
import type { ScenarioContext, Store } from './harness.ts'
import { verifyStore } from './verify.ts'
import { startWorkload } from './workload.ts'

const DELIVERING = { DELIVERY: 'true', WEBHOOKS_ALLOW_PRIVATE: 'true' }

/** The service's limit of parallel calls to one webhook. */
const MAX_PARALLEL_CALLS = 8

/** The lease of a killed worker ends after 45 s; with a margin. */
const LEASE_MS = 45_000 + 5_000

/** Limits the delivery of the backlog once no fault is left. */
const DELIVERY_TIMEOUT_MS = 60_000

/** The service's first delay after a failed attempt. Later delays are longer. */
const FIRST_RETRY_DELAY_MS = 5_000

/**
 * Sends messages to a receiver while the service is killed, while the receiver fails half of the calls, and while the
 * receiver is down. Every acknowledged message must arrive at least once and end `delivered`. The scenario shortens
 * delays of hours in the rows of the queue, as an operator can.
 */
export async function deliveries (context: ScenarioContext): Promise<void> {
  const { quick, report, freshUrl, start, openStore, atEnd } = context
  const url = await freshUrl()
  const service = await start({ DATABASE_URL: url, ...DELIVERING })
  const store = await openStore(() => service.port)
  const queue = await openQueue(url, store.account)
  atEnd(queue.close)
  const receiver = await openReceiver({ teardown: atEnd })
  const body = { url: receiver.url, events: ['message.created'] }
  const { body: { secret } } = await store.client.send({ method: 'POST', path: '/webhooks', body })
  receiver.secrets = [secret]

  await killService()
  await failCalls()
  await stopReceiver()
  await verifyStore(url, store, report)

  async function killService (): Promise<void> {
    receiver.respond = (response) => { setTimeout(() => { response.writeHead(204).end() }, randomInt(0, 20)) }
    const load = startWorkload(store, { workers: 16, retry: true, pause: 10 })
    const rounds = quick ? 2 : 12
    for (let round = 1; round <= rounds; round++) {
      const before = receiver.received.length
      // PostgreSQL can commit a claim of the killed process after endLeases(). That lease has to run out.
      await receiver.until(before + randomInt(1, 60), LEASE_MS + DELIVERY_TIMEOUT_MS)
      await service.kill()
      report.rounds++
      // The last round of the full form waits until the leases run out; the others end them here.
      if (quick || round < rounds) await queue.endLeases()
      await service.start()
    }
    const lost = await load.stop()
    if (lost > 0) report.violations.push(`${lost} clients got no answer`)
    await waitForAll('killed', LEASE_MS + DELIVERY_TIMEOUT_MS)
  }

  async function failCalls (): Promise<void> {
    const calls = new Map<string, number[]>()
    receiver.respond = (response, { id, at }) => {
      const earlier = calls.get(id) ?? []
      calls.set(id, [...earlier, at])
      // The number of failures is limited: a delivery without attempts left has failed for good.
      response.writeHead(earlier.length < (quick ? 2 : 6) && Math.random() < 0.5 ? 500 : 204).end()
    }
    const since = receiver.received.length
    await send(quick ? 60 : 400, 'failing')
    await eventually(() => calls.size === (quick ? 60 : 400), DELIVERY_TIMEOUT_MS,
      () => `only ${calls.size} calls arrived`)
    // The first delays pass unshortened.
    await sleep(quick ? 0 : 12_000)
    for (const times of calls.values()) {
      const [first, second] = times as [number, number?]
      if (second !== undefined && second - first < FIRST_RETRY_DELAY_MS - 100) {
        report.violations.push(`failing: a call was repeated after ${second - first} ms`)
      }
    }
    await waitForAll('failing', DELIVERY_TIMEOUT_MS * 2, queue.endPauses)
    report.notes.push(`failing half of the time: ${receiver.received.length - since} calls for ${calls.size} messages`)
    report.rounds++
  }

  async function stopReceiver (): Promise<void> {
    const backlog = quick ? 60 : 400
    await receiver.close()
    await send(backlog, 'away')
    await eventually(async () => await queue.tried() >= backlog, DELIVERY_TIMEOUT_MS,
      () => 'not every message is tried while the receiver is down')
    await service.kill()
    await queue.endLeases()

    // The receiver is back, and at the start of the service all deliveries are due.
    receiver.respond = (response) => { setTimeout(() => { response.writeHead(204).end() }, 25) }
    receiver.most = 0
    const since = receiver.received.length
    await receiver.reopen()
    await service.start()
    await waitForAll('away', DELIVERY_TIMEOUT_MS)
    const calls = receiver.received.slice(since)
    const numbers = calls.map(({ event }) => event.id as number)
    if (receiver.most > MAX_PARALLEL_CALLS) report.violations.push(`receiver down: ${receiver.most} calls at a time`)
    if (numbers.some((id, i) => i >= MAX_PARALLEL_CALLS && numbers[i - MAX_PARALLEL_CALLS]! > id)) {
      report.violations.push('receiver down: the backlog did not start in the order of its events')
    }
    if (new Set(numbers).size !== numbers.length) {
      report.violations.push('receiver down: an accepted message was sent again')
    }
    const seconds = (calls.at(-1)!.at - calls[0]!.at) / 1_000
    report.notes.push(
      `receiver down: ${calls.length} calls after its return in ${seconds.toFixed(1)} s, ${receiver.most} at a time`)
    report.rounds++
  }

  async function send (count: number, name: string): Promise<void> {
    await Promise.all(Array.from({ length: count }, async (_, i) => {
      const label = `${name} ${i}`
      const key = label.replace(' ', '-')
      const body = { message: label }
      const write = { kind: 'message' as const, label, key, method: 'POST', path: '/messages', body }
      store.ledger.record(write, await store.client.send({ ...write, headers: { 'idempotency-key': write.key } }))
    }))
  }

  /** Waits until all messages are delivered. */
  async function waitForAll (name: string, ms: number, meanwhile = async (): Promise<void> => {}): Promise<void> {
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
    checkArrivals(name, store, receiver)
  }

  /** Checks that each message arrived at least once, and that repeated calls have the same `webhook-id`. */
  function checkArrivals (name: string, { ledger }: Store, { received }: Receiver): void {
    const ids = new Map<string, string>()
    for (const { id, event } of received) {
      const message = event.data.message.id as string
      if (ids.has(id) && ids.get(id) !== message) report.violations.push(`${name}: ${id} identifies two messages`)
      ids.set(id, message)
    }
    const messages = new Set(ids.values())
    if (messages.size !== ids.size) report.violations.push(`${name}: a message arrived with two ids`)
    for (const [label, { id, acknowledged }] of ledger.messages) {
      if (acknowledged === true && !messages.has(String(id))) {
        report.violations.push(`${name}: message ${label} never arrived`)
      }
    }
    report.notes.push(`${name}: ${received.length} calls so far, ${ids.size} of them different`)
  }
}
