import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Reply } from './client.ts'
import type { Service } from './service.ts'
import { lock, type Stage } from './harness.ts'
import { repeat, verify } from './verify.ts'

const QUEUE_LIMIT = 100

/** Who is refused for overload hears of it within this, in ms, on a busy machine. */
const QUICKLY_MS = 3_000

/** What waiting requests may cost, in bytes: far less than all that were refused would. */
const MEMORY_BYTES = 64 * 1024 * 1024

/** Within which the service is itself again, in ms. */
const RECOVERY_MS = 5_000

/**
 * Far more writes than the service can take while another process holds the database: as many wait as
 * `QUEUE_LIMIT` allows, the others are refused at once, memory stays bounded, reads go on, and when the
 * load drops everything works by itself.
 */
export async function overload (stage: Stage): Promise<void> {
  const { quick, report, freshUrl, start, openStore } = stage
  const crowd = quick ? 400 : 1_500
  const url = await freshUrl()
  const service = await start({ DATABASE_URL: url, QUEUE_LIMIT: String(QUEUE_LIMIT) }, { preload: true })
  const store = await openStore(() => service.port, { sockets: crowd })
  const reader = stage.client(() => service.port, { key: store.key })
  // Node accepts one connection in each turn of its event loop: what that takes is not the refusals' time.
  await Promise.all(Array.from({ length: crowd }, async () => await store.client.send({ method: 'GET', path: '/messages' })))

  for (let round = 1; round <= (quick ? 1 : 5); round++) {
    const before = await memory(service)
    const release = await lock(url)
    const waiting: Array<Promise<Reply>> = []
    const refused: Reply[] = []
    // Each asks again and again, as impatient clients do; who got a place in the queue waits.
    const deadline = Date.now() + (quick ? 1_500 : 2_500)
    const clients = Array.from({ length: crowd }, async (_, i) => {
      for (let n = 0; Date.now() < deadline; n++) {
        const label = `flood ${round} ${i} ${n}`
        const act = { kind: 'pet' as const, label, key: label.replaceAll(' ', '-'), method: 'POST', path: '/pets', body: { name: label, categoryId: store.categoryId } }
        const asked = store.client.send({ ...act, headers: { 'idempotency-key': act.key } }).then((reply) => {
          if (reply.status === 503) {
            refused.push(reply)
            store.ledger.unanswered(act, reply.body?.code === 'overloaded')
          } else {
            store.ledger.note(act, reply)
          }
          return reply
        })
        waiting.push(asked)
        await asked
        await sleep(50)
      }
    })
    await sleep(quick ? 1_000 : 2_000)
    const during = await memory(service)
    const read = await reader.send({ method: 'GET', path: '/pets' })
    await release()
    await Promise.all(clients)

    const overloaded = refused.filter(({ body }) => body?.code === 'overloaded')
    const slowest = Math.max(0, ...overloaded.map(({ took }) => took))
    const accepted = (await Promise.all(waiting)).filter(({ status }) => status === 201).length
    report.notes.push(`${waiting.length} writes: ${accepted} done, ${overloaded.length} refused, the slowest after ${slowest.toFixed(0)} ms; heap ${megabytes(before.heap)} → ${megabytes(during.heap)} MB, resident ${megabytes(before.resident)} → ${megabytes(during.resident)} MB`)
    if (overloaded.length === 0) report.violations.push('nothing was refused, so nothing was overloaded')
    if (accepted === 0) report.violations.push('nobody got a place in the queue')
    if (slowest > QUICKLY_MS) report.violations.push(`a refusal took ${slowest.toFixed(0)} ms`)
    if (overloaded.some(({ headers }) => !/^\d+$/.test(String(headers['retry-after'])))) report.violations.push('a refusal has no Retry-After')
    for (const { body } of refused) if (!['overloaded', 'database_unavailable'].includes(body?.code)) report.violations.push(`refused with ${body?.code}`)
    if (during.heap > before.heap + MEMORY_BYTES) report.violations.push(`the heap grew from ${megabytes(before.heap)} to ${megabytes(during.heap)} MB`)
    if (read.status !== 200 || read.took > QUICKLY_MS) report.violations.push(`a read is answered ${read.status} after ${read.took.toFixed(0)} ms`)
    await recovers()
    report.rounds++
  }
  await repeat(store, report, 300)
  await verify(url, store, report)

  async function recovers (): Promise<void> {
    const deadline = Date.now() + RECOVERY_MS
    for (;;) {
      const { status } = await store.client.send({ method: 'POST', path: '/accounts', body: { name: 'After the flood' } })
      if (status === 201) return
      if (Date.now() > deadline) {
        report.violations.push(`writes are answered ${status} ${RECOVERY_MS} ms after the flood`)
        return
      }
      await sleep(50)
    }
  }
}

async function memory (service: Service): Promise<{ heap: number, resident: number }> {
  const { heap = 0 } = await service.ask('memory')
  return { heap, resident: residentOf(service.pid) }
}

/** In bytes; 0 where the system does not say. */
export function residentOf (pid: number): number {
  try {
    return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024
  } catch {
    return 0
  }
}

function megabytes (bytes: number): string {
  return (bytes / 1024 / 1024).toFixed(0)
}
