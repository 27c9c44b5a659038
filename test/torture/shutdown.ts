import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually, openReceiver } from '../support/receiver.ts'
import type { Act } from './ledger.ts'
import type { Reply } from './client.ts'
import { statusOf, type Service } from './service.ts'
import { lock, type Stage, type Store } from './harness.ts'
import { verify } from './verify.ts'
import { startWorkload } from './workload.ts'

const GRACE_MS = 15_000

/** A process that has nothing left to wait for takes no longer to end than this, in ms, on a busy machine. */
const AT_ONCE_MS = 4_000

/**
 * SIGTERM under load: whoever gets no byte of an answer may be sure that nothing was done, everybody
 * else gets a whole answer, and the process ends by itself. A second signal ends it at once.
 */
export async function shutdown (stage: Stage): Promise<void> {
  const { quick, report, freshUrl, start, openStore } = stage
  const url = await freshUrl()
  const service = await start({ DATABASE_URL: url, SHUTDOWN_GRACE_MS: String(GRACE_MS) })
  const store = await openStore(() => service.port)
  const counts = { whole: 0, refused: 0, none: 0 }
  let slowest = 0

  for (let round = 0; round < (quick ? 2 : 20); round++) {
    if (round > 0) await service.start()
    const load = startWorkload(store, { workers: 32, retry: false, onReply: note })
    await sleep(randomInt(100, 700))
    slowest = Math.max(slowest, await terminate(service))
    await load.stop()
    report.rounds++
  }
  await verify(url, store, report)
  report.notes.push(`${counts.whole} whole answers, ${counts.refused} times 503 shutting_down, ${counts.none} closed without a byte; the slowest end took ${slowest} ms`)

  await service.start()
  await finishesWhatItBegan(service, store, url)
  await service.start()
  await endsAtTheSecondSignal(service, store, url)
  await service.kill()
  await dropsCallsUnderWay(stage)
  const hasty = await start({ DATABASE_URL: url, SHUTDOWN_GRACE_MS: '1000' })
  await endsAfterItsGrace(hasty, stage, store, url)
  await verify(url, store, report)

  function note (act: Act, reply: Reply): void {
    if (reply.cut) report.violations.push(`${act.method} ${act.path} got half an answer`)
    if (reply.status === 0) {
      counts.none++
      store.ledger.unanswered(act, true)
    } else if (reply.status === 503) {
      counts.refused++
      store.ledger.unanswered(act, true)
      if (reply.body?.code !== 'shutting_down') report.violations.push(`${act.method} ${act.path} is answered ${reply.text}`)
    } else {
      counts.whole++
    }
  }

  /** @returns after how many ms it ended */
  async function terminate (service: Service): Promise<number> {
    const began = Date.now()
    service.signal('SIGTERM')
    const end = await endWithin(service, GRACE_MS)
    if (end !== 0) report.violations.push(`SIGTERM under load: the service ${end === undefined ? `runs on after ${GRACE_MS} ms` : `ends with ${end}`}: ${service.output().slice(-500)}`)
    return Date.now() - began
  }

  async function finishesWhatItBegan (service: Service, store: Store, url: string): Promise<void> {
    const { release, waiting } = await stuck(service, store, url, 'begun')
    service.signal('SIGTERM')
    await sleep(300)
    await release()
    const reply = await waiting
    // Its connection is kept alive by nobody: the answer was the last that anybody waits for.
    const end = await endWithin(service, AT_ONCE_MS)
    if (reply.status !== 201) report.violations.push(`a request under way at SIGTERM is answered ${reply.status} ${reply.text}`)
    if (end !== 0) report.violations.push(`after its last answer the service ${end === undefined ? `runs on for ${AT_ONCE_MS} ms` : `ends with ${end}`}`)
    report.rounds++
  }

  async function endsAtTheSecondSignal (service: Service, store: Store, url: string): Promise<void> {
    const { release, waiting } = await stuck(service, store, url, 'second signal')
    service.signal('SIGTERM')
    await sleep(300)
    service.signal('SIGTERM')
    if (await endWithin(service, AT_ONCE_MS) === undefined) report.violations.push('a second SIGTERM does not end the service at once')
    await release()
    await service.kill()
    await waiting
    report.rounds++
  }

  async function endsAfterItsGrace (service: Service, stage: Stage, store: Store, url: string): Promise<void> {
    const { release, waiting } = await stuck(service, { ...store, client: stage.client(() => service.port, { key: store.key }) }, url, 'grace')
    service.signal('SIGTERM')
    if (await endWithin(service, 1_000 + AT_ONCE_MS) === undefined) report.violations.push('a request that never ends keeps the service alive beyond SHUTDOWN_GRACE_MS')
    await release()
    await service.kill()
    await waiting
    report.rounds++
  }

  /** A write that waits for another process's lock. */
  async function stuck (service: Service, { client, ledger, categoryId }: Store, url: string, key: string): Promise<{ release: () => Promise<void>, waiting: Promise<Reply> }> {
    const release = await lock(url)
    const act: Act = { kind: 'pet', label: `stuck ${key}`, key, method: 'POST', path: '/pets', body: { name: `stuck ${key}`, categoryId } }
    const waiting = client.send({ ...act, headers: { 'idempotency-key': key } }).then((reply) => {
      if (reply.status === 201) ledger.note(act, reply)
      else ledger.unanswered(act)
      return reply
    })
    await sleep(200)
    // What is answered now came later, so that one's head has been read.
    await statusOf(service.port, '/livez')
    return { release, waiting }
  }
}

/** Webhooks' calls are nobody's answer: SIGTERM drops them at once, and the next start sends them again. */
async function dropsCallsUnderWay ({ report, freshUrl, start, openStore, atEnd }: Stage): Promise<void> {
  const service = await start({ DATABASE_URL: await freshUrl(), DELIVERY: 'true', WEBHOOKS_ALLOW_PRIVATE: 'true' })
  const { client } = await openStore(() => service.port, { pets: 0 })
  const receiver = await openReceiver({ teardown: atEnd }, () => {})
  await client.send({ method: 'POST', path: '/webhooks', body: { url: receiver.url, events: ['message.created'] } })
  const sent = await Promise.all(Array.from({ length: 12 }, async (_, i) => (await client.send({ method: 'POST', path: '/messages', body: { message: `${i}` } })).body.id as string))
  await receiver.until(8)
  service.signal('SIGTERM')
  const end = await endWithin(service, AT_ONCE_MS)
  if (end !== 0) report.violations.push(`with webhooks' calls under way, SIGTERM is followed by ${end}`)
  const dropped = receiver.received.map(({ id }) => id)

  receiver.respond = (response) => { response.writeHead(204).end() }
  await service.start()
  // At once: no lease is waited for, and no pause.
  await receiver.until(dropped.length + sent.length)
  const again = receiver.received.slice(dropped.length)
  if (new Set(again.map(({ id }) => id)).size !== sent.length) report.violations.push('not every message is sent after the start')
  for (const id of dropped) if (!again.some((received) => received.id === id)) report.violations.push(`the call ${id}, dropped at SIGTERM, is not sent again`)
  for (const id of sent) await eventually(async () => (await client.send({ method: 'GET', path: `/messages/${id}` })).body?.status === 'delivered')
  await service.kill()
  report.rounds++
}

/** @returns the exit code, the signal that ended it, or `undefined` when it runs on */
async function endWithin (service: Service, ms: number): Promise<number | NodeJS.Signals | undefined> {
  return await Promise.race([service.ended(), sleep(ms, undefined, { ref: false })])
}
