import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { openStream, type Stream } from '../support/stream.ts'
import { measure, settled, type Measure } from './connections.ts'
import { residentOf } from './overload.ts'
import type { Service } from './service.ts'
import type { Stage, Store } from './harness.ts'

/** What an idle follower may cost: its connection, mostly. */
const FOLLOWER_BYTES = 64 * 1024

/** An event reaches every follower within this, in ms, on a busy machine. */
const HEARD_MS = 10_000

/** Share of a core that thousands of idle followers may take; a heartbeat each is far less. */
const IDLE_SHARE = 0.1

/** Thousands of followers that have nothing to hear: they cost a connection each, and hear at once what happens. */
export async function followers (stage: Stage): Promise<void> {
  const { quick, report, freshUrl, start, openStore, atEnd } = stage
  const service = await start({ DATABASE_URL: await freshUrl() }, { preload: true })
  const stores = [await openStore(() => service.port, { pets: 0 }), await openStore(() => service.port, { pets: 0 })]
  const count = quick ? 300 : 2_000
  const streams: Stream[] = []
  atEnd(() => { for (const stream of streams) stream.close() })
  const open = async (): Promise<void> => {
    // Both accounts have followers: a commit wakes those of one.
    for (let i = 0; i < count; i += 100) streams.push(...await Promise.all(Array.from({ length: 100 }, async (_, n) => await openStream(service, stores[n % 2]!, { path: '/events?after=1' }))))
  }
  const close = async (): Promise<void> => {
    for (const stream of streams.splice(0)) stream.close()
    await sleep(500)
  }
  // The first ones cost memory that stays: compiled code, statements.
  await open()
  await close()

  const before = await memory(service)
  await open()
  const [during, cpu] = [await memory(service), await cpuShare(service, quick ? 3_000 : 30_000)]
  const each = (during.heap - before.heap) / count
  report.notes.push(`${count} idle followers: ${(each / 1024).toFixed(1)} kB of heap each, resident ${(before.resident / 1048576).toFixed(0)} → ${(during.resident / 1048576).toFixed(0)} MB, ${(cpu * 100).toFixed(1)} % of a core`)
  if (each > FOLLOWER_BYTES) report.violations.push(`an idle follower costs ${each.toFixed(0)} bytes`)
  if (cpu > IDLE_SHARE) report.violations.push(`idle followers take ${(cpu * 100).toFixed(1)} % of a core`)

  for (const [i, store] of stores.entries()) report.notes.push(await heard(store, streams.filter((_, n) => n % 2 === i)))
  await close()
  const after = await settled(service, before)
  if (after.handles > before.handles + 2) report.violations.push(`${before.handles} handles before, ${after.handles} after`)
  report.rounds++

  async function heard ({ client }: Store, audience: Stream[]): Promise<string> {
    const had = audience.map(({ events }) => events.length)
    const began = performance.now()
    const { status } = await client.send({ method: 'POST', path: '/messages', body: { message: 'Hello' } })
    if (status !== 201) report.violations.push(`a message is answered ${status}`)
    await Promise.all(audience.map(async (stream, i) => { await stream.until(had[i]! + 1, HEARD_MS) }))
    const doubled = audience.filter(({ events }, i) => events.length !== had[i]! + 1).length
    if (doubled > 0) report.violations.push(`${doubled} followers heard one event more than once`)
    return `${audience.length} followers heard an event within ${(performance.now() - began).toFixed(0)} ms`
  }
}

async function memory (service: Service): Promise<Measure & { resident: number }> {
  return { ...await measure(service), resident: residentOf(service.pid) }
}

/** Share of a core that the process takes; 0 where the system does not say. */
async function cpuShare ({ pid }: Service, ms: number): Promise<number> {
  const before = ticks(pid)
  await sleep(ms)
  return (ticks(pid) - before) * 10 / ms
}

/** CPU time so far, user and system, in hundredths of a second (proc_pid_stat(5)). */
function ticks (pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
    return Number(fields[11]) + Number(fields[12])
  } catch {
    return 0
  }
}
