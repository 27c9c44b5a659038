import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { openStream, type Stream } from '../support/stream.ts'
import { measure, waitForRelease, type Measure } from './connections.ts'
import { residentOf } from './overload.ts'
import type { Service } from './service.ts'
import type { ScenarioContext, Store } from './harness.ts'

/** Limits the heap of an idle follower, which is mostly its connection. */
const MAX_STREAM_BYTES = 64 * 1024

/** Limits the time until an event arrives in every stream, on a busy machine. */
const EVENT_TIMEOUT_MS = 10_000

/** Limits the share of a core that thousands of idle followers use. A heartbeat for each uses far less. */
const MAX_IDLE_CPU_SHARE = 0.1

/** Opens thousands of idle streams. Each may cost little more than a connection, and gets each event once and soon. */
export async function followers (context: ScenarioContext): Promise<void> {
  const { quick, slack, report, freshUrl, start, openStore, atEnd } = context
  const service = await start({ DATABASE_URL: await freshUrl() }, { preload: true })
  const count = quick ? 100 : 2_000
  // An account has at most 100 streams. Several have followers, because a commit wakes only those of one account.
  const stores = await Promise.all(Array.from({ length: quick ? 2 : 20 }, async () =>
    await openStore(() => service.port, { pets: 0 })))
  const streams: Stream[] = []
  atEnd(() => { for (const stream of streams) stream.close() })
  const open = async (): Promise<void> => {
    for (let i = 0; i < count; i += 100) {
      streams.push(...await Promise.all(Array.from({ length: 100 }, async (_, n) =>
        await openStream(service, stores[n % stores.length]!, { path: '/events?after=1' }))))
    }
    const refused = streams.find(({ status }) => status !== 200)
    if (refused !== undefined) throw new Error(`a stream is answered ${refused.status}`)
  }
  const close = async (): Promise<void> => {
    for (const stream of streams.splice(0)) stream.close()
    await sleep(500)
  }
  // The first streams compile code and prepare statements. That memory stays and is no leak.
  await open()
  await close()

  const before = await memory(service)
  await open()
  const [during, cpu] = [await memory(service), await cpuShare(service, quick ? 3_000 : 30_000)]
  const each = (during.heap - before.heap) / count
  const [residentBefore, resident] = [before.resident, during.resident].map((bytes) => (bytes / 1048576).toFixed(0))
  report.notes.push(`${count} idle followers: ${(each / 1024).toFixed(1)} kB of heap each, ` +
    `resident ${residentBefore} → ${resident} MB, ${(cpu * 100).toFixed(1)} % of a core`)
  if (each > MAX_STREAM_BYTES) report.violations.push(`an idle follower costs ${each.toFixed(0)} bytes`)
  if (cpu > slack * MAX_IDLE_CPU_SHARE) { report.violations.push(`idle followers use ${(cpu * 100).toFixed(1)} % of a core`) }

  const times: number[] = []
  for (const [i, store] of stores.entries()) {
    times.push(await checkEvent(store, streams.filter((_, n) => n % stores.length === i)))
  }
  report.notes.push(`the ${count / stores.length} followers of a store got an event within ${Math.max(...times).toFixed(0)} ms`)
  await close()
  const after = await waitForRelease(service, before)
  if (after.handles > before.handles + 2) {
    report.violations.push(`${before.handles} handles before, ${after.handles} after`)
  }
  report.rounds++

  /** Makes an event and waits until it arrived in each stream. @returns the time in ms */
  async function checkEvent ({ client }: Store, ownStreams: Stream[]): Promise<number> {
    const counts = ownStreams.map(({ events }) => events.length)
    const began = performance.now()
    const { status } = await client.send({ method: 'POST', path: '/messages', body: { message: 'Hello' } })
    if (status !== 201) report.violations.push(`a message is answered ${status}`)
    await Promise.all(
      ownStreams.map(async (stream, i) => {
        await stream.until(counts[i]! + 1, slack * EVENT_TIMEOUT_MS)
      })
    )
    const doubled = ownStreams.filter(({ events }, i) => events.length !== counts[i]! + 1).length
    if (doubled > 0) report.violations.push(`${doubled} followers got one event more than once`)
    return performance.now() - began
  }
}

async function memory (service: Service): Promise<Measure & { resident: number }> {
  return { ...await measure(service), resident: residentOf(service.pid) }
}

/** Measures the share of a core that the process uses. On systems without /proc it returns 0. */
async function cpuShare ({ pid }: Service, ms: number): Promise<number> {
  const before = ticks(pid)
  await sleep(ms)
  return (ticks(pid) - before) * 10 / ms
}

/** Reads the CPU time so far, user and system, in hundredths of a second (proc_pid_stat(5)). */
function ticks (pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
    return Number(fields[11]) + Number(fields[12])
  } catch {
    return 0
  }
}
