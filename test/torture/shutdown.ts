import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually, openReceiver } from '../support/receiver.ts'
import type { WriteRequest } from './ledger.ts'
import type { Reply } from './client.ts'
import { statusOf, type Service } from './service.ts'
import { lockWrites, type ScenarioContext, type Store } from './harness.ts'
import { verifyStore } from './verify.ts'
import { startWorkload } from './workload.ts'

const GRACE_MS = 15_000

/** Limits the end of a process without work left, on a busy machine. */
const EXIT_TIMEOUT_MS = 4_000

/**
 * Sends SIGTERM under load. A client that gets no byte of an answer can rely on it that its write had no effect. Every
 * other client must get a complete answer, and the process must end by itself. A second signal ends it at once.
 */
export async function shutdown (context: ScenarioContext): Promise<void> {
  const { quick, slack, report, freshUrl, start, openStore } = context
  const url = await freshUrl()
  // A blocked write must end through the lock or the signal, and not through its time-out.
  const settings = { DATABASE_URL: url, REQUEST_TIMEOUT_MS: '600000' }
  const service = await start({ ...settings, SHUTDOWN_GRACE_MS: String(slack * GRACE_MS) })
  const store = await openStore(() => service.port)
  const counts = { complete: 0, refused: 0, none: 0 }
  let slowest = 0

  for (let round = 0; round < (quick ? 1 : 20); round++) {
    if (round > 0) await service.start()
    const load = startWorkload(store, { workers: 32, retry: false, onReply: countReply })
    await sleep(randomInt(100, 700))
    slowest = Math.max(slowest, await terminate(service))
    await load.stop()
    report.rounds++
  }
  await verifyStore(url, store, report)
  report.notes.push(`${counts.complete} complete answers, ${counts.refused} times 503 shutting_down, ` +
    `${counts.none} connections closed without a byte; the slowest end took ${slowest} ms`)

  await service.start()
  await checkRequestInFlight(service, store, url)
  await service.start()
  await checkSecondSignal(service, store, url)
  await service.kill()
  await checkCallsInFlight(context)
  const impatient = await start({ ...settings, SHUTDOWN_GRACE_MS: '1000' })
  await checkGracePeriod(impatient, context, store, url)
  await verifyStore(url, store, report)

  function countReply (write: WriteRequest, reply: Reply): void {
    if (reply.truncated) report.violations.push(`${write.method} ${write.path} got a truncated answer`)
    if (reply.status === 0) {
      counts.none++
      store.ledger.recordUnanswered(write, true)
    } else if (reply.status === 503) {
      counts.refused++
      store.ledger.recordUnanswered(write, true)
      if (reply.body?.code !== 'shutting_down') {
        report.violations.push(`${write.method} ${write.path} is answered ${reply.text}`)
      }
    } else {
      counts.complete++
    }
  }

  /** Sends SIGTERM and waits for the end. @returns the time in ms */
  async function terminate (service: Service): Promise<number> {
    const began = Date.now()
    service.signal('SIGTERM')
    const end = await endWithin(service, slack * GRACE_MS)
    if (end !== 0) {
      const result = end === undefined ? `runs on after ${slack * GRACE_MS} ms` : `ends with ${end}`
      report.violations.push(`SIGTERM under load: the service ${result}: ${service.output().slice(-500)}`)
    }
    return Date.now() - began
  }

  async function checkRequestInFlight (service: Service, store: Store, url: string): Promise<void> {
    const { release, waiting } = await startBlockedWrite(service, store, url, 'begun')
    service.signal('SIGTERM')
    await sleep(300)
    await release()
    const reply = await waiting
    // The client's kept connection must not delay the end.
    const end = await endWithin(service, slack * EXIT_TIMEOUT_MS)
    if (reply.status !== 201) {
      report.violations.push(`a request in flight at SIGTERM is answered ${reply.status} ${reply.text}`)
    }
    if (end !== 0) {
      const result = end === undefined ? `runs on for ${slack * EXIT_TIMEOUT_MS} ms` : `ends with ${end}`
      report.violations.push(`after its last answer the service ${result}`)
    }
    report.rounds++
  }

  async function checkSecondSignal (service: Service, store: Store, url: string): Promise<void> {
    const { release, waiting } = await startBlockedWrite(service, store, url, 'second signal')
    service.signal('SIGTERM')
    await sleep(300)
    service.signal('SIGTERM')
    if (await endWithin(service, slack * EXIT_TIMEOUT_MS) === undefined) {
      report.violations.push('a second SIGTERM does not end the service at once')
    }
    await release()
    await service.kill()
    await waiting
    report.rounds++
  }

  async function checkGracePeriod (
    service: Service, context: ScenarioContext, store: Store, url: string
  ): Promise<void> {
    const client = context.client(() => service.port, { key: store.key })
    const { release, waiting } = await startBlockedWrite(service, { ...store, client }, url, 'grace')
    service.signal('SIGTERM')
    if (await endWithin(service, 1_000 + slack * EXIT_TIMEOUT_MS) === undefined) {
      report.violations.push('a request that never ends keeps the service alive beyond SHUTDOWN_GRACE_MS')
    }
    await release()
    await service.kill()
    await waiting
    report.rounds++
  }

  /** Starts a write that waits for a lock of this process. */
  async function startBlockedWrite (
    service: Service, { client, ledger, categoryId }: Store, url: string, key: string
  ): Promise<BlockedWrite> {
    const release = await lockWrites(url)
    const label = `blocked ${key}`
    const body = { name: label, categoryId }
    const write: WriteRequest = { kind: 'pet', label, key, method: 'POST', path: '/pets', body }
    const waiting = client.send({ ...write, headers: { 'idempotency-key': key } }).then((reply) => {
      if (reply.status === 201) ledger.record(write, reply)
      else ledger.recordUnanswered(write)
      return reply
    })
    await sleep(200)
    // The service answers this later request, so that it has read the head of the write.
    await statusOf(service.port, '/livez')
    return { release, waiting }
  }
}

interface BlockedWrite {
  release: () => Promise<void>
  waiting: Promise<Reply>
}

/** Checks that SIGTERM ends webhook calls in flight at once, and that the next start repeats them. */
async function checkCallsInFlight ({
  slack,
  report,
  freshUrl,
  start,
  openStore,
  atEnd
}: ScenarioContext): Promise<void> {
  const settings = { DATABASE_URL: await freshUrl(), DELIVERY: 'true', WEBHOOKS_ALLOW_PRIVATE: 'true' }
  const service = await start(settings)
  const { client } = await openStore(() => service.port, { pets: 0 })
  // A receiver that has answered no call gets one at a time, which would take a time-out each.
  const receiver = await openReceiver({ teardown: atEnd }, (response, _received, nth) => {
    if (nth === 1) response.writeHead(204).end()
  })
  const webhook = { url: receiver.url, events: ['message.created'] }
  await client.send({ method: 'POST', path: '/webhooks', body: webhook })
  const sent = await Promise.all(
    Array.from({ length: 12 }, async (_, i) => {
      const { body } = await client.send({ method: 'POST', path: '/messages', body: { message: `${i}` } })
      return body.id as string
    })
  )
  await receiver.until(2)
  service.signal('SIGTERM')
  const end = await endWithin(service, slack * EXIT_TIMEOUT_MS)
  if (end !== 0) report.violations.push(`with webhook calls in flight, the service ends with ${end} after SIGTERM`)
  const calls = receiver.received.length
  const aborted = receiver.received.slice(1).map(({ id }) => id)

  receiver.respond = (response) => {
    response.writeHead(204).end()
  }
  await service.start()
  // The next start waits for no lease and no delay.
  await receiver.until(calls + sent.length - 1)
  const again = receiver.received.slice(calls)
  if (new Set(again.map(({ id }) => id)).size !== sent.length - 1) {
    report.violations.push('not every message is sent after the start')
  }
  for (const id of aborted) {
    if (!again.some((received) => received.id === id)) {
      report.violations.push(`the call ${id}, ended by SIGTERM, is not repeated`)
    }
  }
  for (const id of sent) {
    const get = { method: 'GET', path: `/messages/${id}` }
    await eventually(async () => (await client.send(get)).body?.status === 'delivered')
  }
  await service.kill()
  report.rounds++
}

/** Waits for the end of the service. @returns its exit code or signal, or `undefined` when it runs on */
async function endWithin (service: Service, ms: number): Promise<number | NodeJS.Signals | undefined> {
  return await Promise.race([service.ended(), sleep(ms, undefined, { ref: false })])
}
