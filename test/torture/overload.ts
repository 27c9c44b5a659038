import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Reply } from './client.ts'
import type { Service } from './service.ts'
import { lockWrites, type ScenarioContext } from './harness.ts'
import { repeatWrites, verifyStore } from './verify.ts'

/** One account can fill a quarter of it. Groups that run have others: of PostgreSQL up to 256 writes each. */
const QUEUE_LIMIT = { full: 400, quick: 100 }

/** Limits the time of a refusal for overload, on a busy machine. */
const REFUSAL_TIMEOUT_MS = 3_000

/** Limits the time until the first refusal. */
const MAX_WAIT_MS = 30_000

/** Limits the memory of waiting requests: far less than all refused ones would need. */
const MAX_HEAP_GROWTH_BYTES = 64 * 1024 * 1024

/** Limits the recovery after the overload. */
const RECOVERY_MS = 5_000

/**
 * Sends far more writes than the service accepts while another process locks the database. A quarter of `QUEUE_LIMIT`
 * waits; the service must refuse the others at once, bound its memory, answer reads, and recover when the load drops.
 */
export async function overload (context: ScenarioContext): Promise<void> {
  const { quick, slack, report, freshUrl, start, openStore } = context
  const clientCount = quick ? 200 : 1_500
  const url = await freshUrl()
  const limit = QUEUE_LIMIT[quick ? 'quick' : 'full']
  const service = await start({ DATABASE_URL: url, QUEUE_LIMIT: String(limit) }, { preload: true })
  const store = await openStore(() => service.port, { sockets: clientCount })
  const reader = context.client(() => service.port, { key: store.key })
  // Node accepts one connection in each turn of its event loop. That time must not count as time of refusals.
  await Promise.all(Array.from({ length: clientCount }, async () =>
    await store.client.send({ method: 'GET', path: '/messages' })))

  for (let round = 1; round <= (quick ? 1 : 5); round++) {
    const before = await memory(service)
    const release = await lockWrites(url)
    const waiting: Array<Promise<Reply>> = []
    const refused: Reply[] = []
    const isOverload = ({ body }: Reply): boolean => body?.code === 'overloaded'
    // Each client repeats its write until one gets a place in the queue.
    const over = new AbortController()
    const clients = Array.from({ length: clientCount }, async (_, i) => {
      for (let n = 0; !over.signal.aborted; n++) {
        const label = `overload ${round} ${i} ${n}`
        const key = label.replaceAll(' ', '-')
        const body = { name: label, categoryId: store.categoryId }
        const write = { kind: 'pet' as const, label, key, method: 'POST', path: '/pets', body }
        const asked = store.client.send({ ...write, headers: { 'idempotency-key': write.key } }).then((reply) => {
          if (reply.status === 503) {
            refused.push(reply)
            store.ledger.recordUnanswered(write, isOverload(reply))
          } else {
            store.ledger.record(write, reply)
          }
          return reply
        })
        waiting.push(asked)
        await asked
        await sleep(50)
      }
    })
    let during, read
    try {
      await sleep(quick ? 1_000 : 2_000)
      // A busy machine may not have sent enough writes yet.
      const deadline = Date.now() + MAX_WAIT_MS
      while (!refused.some(isOverload) && Date.now() < deadline) await sleep(50)
      during = await memory(service)
      read = await reader.send({ method: 'GET', path: '/pets' })
    } finally {
      await release().then(async () => { await sleep(500) }).finally(() => { over.abort() })
    }
    await Promise.all(clients)

    const overloaded = refused.filter(isOverload)
    const slowest = Math.max(0, ...overloaded.map(({ took }) => took))
    const accepted = (await Promise.all(waiting)).filter(({ status }) => status === 201).length
    const growth = `from ${megabytes(before.heap)} to ${megabytes(during.heap)} MB`
    report.notes.push(
      `${waiting.length} writes: ${accepted} done, ${overloaded.length} refused, the slowest after ` +
      `${slowest.toFixed(0)} ms; the heap grew ${growth}, ` +
      `resident ${megabytes(before.resident)} → ${megabytes(during.resident)} MB`)
    if (overloaded.length === 0) report.violations.push('no write was refused, so that there was no overload')
    if (accepted === 0) report.violations.push('no write got a place in the queue')
    if (slowest > slack * REFUSAL_TIMEOUT_MS) report.violations.push(`a refusal took ${slowest.toFixed(0)} ms`)
    if (overloaded.some(({ headers }) => !/^\d+$/.test(String(headers['retry-after'])))) {
      report.violations.push('a refusal has no Retry-After')
    }
    for (const { body } of refused) {
      if (!['overloaded', 'database_unavailable'].includes(body?.code)) {
        report.violations.push(`refused with ${body?.code}`)
      }
    }
    if (during.heap > before.heap + MAX_HEAP_GROWTH_BYTES) report.violations.push(`the heap grew ${growth}`)
    if (read.status !== 200 || read.took > slack * REFUSAL_TIMEOUT_MS) {
      report.violations.push(`a read is answered ${read.status} after ${read.took.toFixed(0)} ms`)
    }
    await checkRecovery()
    report.rounds++
  }
  await repeatWrites(store, report, 300)
  await verifyStore(url, store, report)

  async function checkRecovery (): Promise<void> {
    const deadline = Date.now() + slack * RECOVERY_MS
    for (;;) {
      const body = { name: 'After the overload' }
      const { status } = await store.client.send({ method: 'POST', path: '/accounts', body })
      if (status === 201) return
      if (Date.now() > deadline) {
        report.violations.push(`writes are answered ${status} ${slack * RECOVERY_MS} ms after the overload`)
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

/** Returns the resident size of a process in bytes, or 0 on systems without /proc. */
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
