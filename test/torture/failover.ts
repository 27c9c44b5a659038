import { setTimeout as sleep } from 'node:timers/promises'
import type { ScenarioContext, Store } from './harness.ts'
import { missingPrograms, startCluster, type Cluster, type Node } from './patroni.ts'
import { statusOf, type Service } from './service.ts'
import { repeatWrites, verifyStore } from './verify.ts'
import { startWorkload } from './workload.ts'

/** How much later than a new primary the service reads and writes again, in ms. */
const RECOVERY_MS = 3_000

/** A primary is elected when the lease of the former one has ended, within 20 s. */
const ELECTION_MS = 120_000

/** The time of load before each fault, in ms. */
const LOAD_MS = 3_000

interface Fault {
  name: string
  begin: (cluster: Cluster, primary: Node) => Promise<void> | void
  /** Brings the former primary back. */
  end: (cluster: Cluster, former: Node) => void
}

const FAULTS: Fault[] = [
  {
    name: 'switched over',
    begin: async (cluster) => { await cluster.switchOver() },
    end: () => {}
  },
  {
    name: 'killed',
    begin: (cluster, primary) => { cluster.signal(primary, 'SIGKILL') },
    end: (cluster, former) => { cluster.start(former) }
  },
  {
    name: 'paused',
    begin: (cluster, primary) => { cluster.signal(primary, 'SIGSTOP') },
    end: (cluster, former) => { cluster.signal(former, 'SIGCONT') }
  }
]

/** Loses the primary of a PostgreSQL with a synchronous standby, under the load of two services behind a balancer. */
export async function failover (context: ScenarioContext): Promise<void> {
  const { quick, report, start, openStore, atEnd } = context
  const missing = missingPrograms()
  if (missing.length > 0) {
    report.notes.push(`skipped: there is no ${missing.join(', ')}`)
    return
  }
  const began = Date.now()
  const cluster = await startCluster(atEnd)
  report.notes.push(`the cluster was ready after ${seconds(Date.now() - began)}`)
  const settings = { DATABASE_URL: cluster.url, LOG_LEVEL: 'fatal' }
  const services = [await start(settings), await start(settings)]
  let turn = 0
  const store = await openStore(() => services[turn++ % services.length]!.port)
  const acknowledged: number[] = []
  const load = startWorkload(store, {
    workers: 16,
    retry: true,
    pause: 20,
    onReply: (_write, { status }) => { if (status >= 200 && status < 300) acknowledged.push(performance.now()) }
  })
  for (let round = 0; round < (quick ? 1 : 2); round++) {
    for (const fault of FAULTS) {
      await cluster.healthy()
      await sleep(LOAD_MS)
      await loseThePrimary(fault, { ...context, cluster, services, store, acknowledged })
      report.rounds++
    }
  }
  await cluster.healthy()
  const lost = await load.stop()
  if (lost > 0) report.violations.push(`${lost} clients got no answer`)
  await repeatWrites(store, report, 500)
  await verifyStore(cluster.url, store, report)
}

interface Situation extends ScenarioContext {
  cluster: Cluster
  services: Service[]
  store: Store
  /** When writes of the load were acknowledged. */
  acknowledged: number[]
}

async function loseThePrimary (fault: Fault, situation: Situation): Promise<void> {
  const { cluster, services, report, slack, acknowledged } = situation
  const former = await cluster.primary()
  if (former === undefined) throw new Error('there is no primary')
  const readiness = watchReadiness(services)
  const began = performance.now()
  // The command of the switchover ends later than the clients notice.
  Promise.resolve(fault.begin(cluster, former)).catch((error: unknown) => { report.violations.push(String(error)) })
  let next: Node | undefined
  while (next === undefined || next === former) {
    if (performance.now() - began > ELECTION_MS) throw new Error(`${fault.name}: no other node became the primary`)
    await sleep(50)
    next = await cluster.primary()
  }
  const elected = performance.now()
  const recovered = await Promise.all(services.map(async (service) => await works(situation, service)))
  const took = Math.max(...recovered) - elected
  if (took > slack * RECOVERY_MS) {
    report.violations.push(`${fault.name}: reads and writes work ${seconds(took)} after the new primary was there`)
  }
  await sleep(RECOVERY_MS)
  const answers = await readiness.stop()
  const pause = longestPause(acknowledged, began)
  report.notes.push(`${fault.name}: another primary after ${seconds(elected - began)}, both services read and write ` +
    `${seconds(took)} later; no write was acknowledged for ${seconds(pause.end - pause.begin)}`)
  // Within the limit of a recovery, an answer may be older than the fault.
  const false200 = answers.filter(({ time, status }) =>
    status === 200 && time > pause.begin + RECOVERY_MS && time < pause.end - RECOVERY_MS)
  if (false200.length > 0) report.violations.push(`${fault.name}: /readyz was 200 ${false200.length} times in the outage`)
  fault.end(cluster, former)
}

/** Waits until a service is ready, writes and reads. @returns the time */
async function works ({ client, store }: Situation, service: Service): Promise<number> {
  const { send, close } = client(() => service.port, { key: store.key })
  for (let i = 0; ; i++) {
    const headers = { 'idempotency-key': `probe-${service.port}-${performance.now()}-${i}` }
    const write = await send({ method: 'POST', path: '/categories', body: { name: 'Cats' }, headers })
    const read = await send({ method: 'GET', path: '/categories?limit=1' })
    if (write.status === 201 && read.status === 200 && await statusOf(service.port, '/readyz') === 200) break
    await sleep(50)
  }
  close()
  return performance.now()
}

interface Readiness { time: number, status: number }

/** Asks services again and again whether they are ready. An answer counts for the time at which it arrived. */
function watchReadiness (services: Service[]): { stop: () => Promise<Readiness[]> } {
  const answers: Readiness[] = []
  const stopped = new AbortController()
  const watching = Promise.all(services.map(async ({ port }) => {
    while (!stopped.signal.aborted) {
      const status = await statusOf(port, '/readyz')
      answers.push({ time: performance.now(), status })
      await sleep(100)
    }
  }))
  return {
    async stop () {
      stopped.abort()
      await watching
      return answers
    }
  }
}

/** Returns the longest time without an acknowledged write, from a moment on. */
function longestPause (times: number[], since: number): { begin: number, end: number } {
  const later = [since, ...times.filter((time) => time > since).sort((a, b) => a - b), performance.now()]
  let longest = { begin: since, end: since }
  for (let i = 1; i < later.length; i++) {
    const pause = { begin: later[i - 1]!, end: later[i]! }
    if (pause.end - pause.begin > longest.end - longest.begin) longest = pause
  }
  return longest
}

function seconds (ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`
}
