import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { Client } from '../client.ts'
import type { ScenarioContext } from '../harness.ts'
import type { Service } from '../service.ts'
import { checkHistory } from './check.ts'
import { createRecorder } from './recorder.ts'
import { startLoad } from './workload.ts'

/** One process of the service, or one service of several. */
interface Target {
  service: Service
  /** The number of its worker processes, if faults hit one of them at a time. */
  workers: number
  client: Client
  /** False while it is down: requests to it would say nothing. */
  isUp: boolean
}

interface Timing {
  seconds: number
  /** The time between two faults, in ms, and the operations that it needs on a slow machine. */
  calm: [number, number]
  operations: number
  /** The time for which a process stands still, in ms. */
  pause: [number, number]
}

const TIMINGS: Record<'quick' | 'full', Timing> = {
  quick: { seconds: 2, calm: [200, 400], operations: 80, pause: [800, 1_200] },
  full: { seconds: 120, calm: [300, 1_500], operations: 100, pause: [1_000, 4_000] }
}

/** Bounds the time of the search of one object. A pet has fewer orders than a page of its list. */
const REQUESTS_PER_OBJECT = 150

const CLIENTS = 12

/**
 * Records what clients see while processes are killed or paused and connections to the database are cut. Some order of
 * the requests must explain all answers and the feed. It looks at nothing but HTTP.
 */
export async function histories (context: ScenarioContext): Promise<void> {
  const { quick, report, freshUrl, start, client } = context
  const isSqlite = report.database === 'SQLite'
  const timing = TIMINGS[quick ? 'quick' : 'full']
  const url = await freshUrl()
  const services: Service[] = []
  const workers = context.processes > 1 ? context.processes : 0
  const settings = { DATABASE_URL: url, ...workers > 0 ? { PROCESSES: String(workers) } : {} }
  for (let i = 0; i < (isSqlite || workers > 0 ? 1 : quick ? 2 : 3); i++) services.push(await start(settings))
  const signUp = { method: 'POST', path: '/accounts', body: { name: 'A store' } }
  const { body: { apiKey: key } } = await client(() => services[0]!.port).send(signUp)
  const targets = services.map((service): Target =>
    ({ service, workers, client: client(() => service.port, { key }), isUp: true }))
  const choose = (): Client | undefined => {
    const up = targets.filter(({ isUp }) => isUp)
    return up[randomInt(Math.max(1, up.length))]?.client
  }

  const recorder = createRecorder(report)
  const load = await startLoad(recorder, { clients: CLIENTS, perObject: REQUESTS_PER_OBJECT, choose })
  const calm = async (): Promise<void> => {
    const wanted = recorder.history.length + timing.operations
    await sleep(randomInt(...timing.calm))
    while (recorder.history.length < wanted) await sleep(20)
  }
  const faults = await injectFaults(targets, isSqlite ? undefined : url, timing, calm)
  await load.stop()
  const feed = await recorder.readFeed(targets[0]!.client)

  const began = performance.now()
  const { objects, undecided, violations } = checkHistory(recorder.history, feed)
  const unknown = recorder.history.filter(({ answer }) => answer === undefined).length
  report.violations.push(...violations)
  if (undecided > 0) report.violations.push(`the search of ${undecided} objects took too long`)
  report.rounds += Object.values(faults).reduce((sum, count) => sum + count, 0)
  report.checked += recorder.history.length - unknown
  report.notes.push(
    `${recorder.history.length} operations (${unknown} of unknown outcome) on ${objects} objects, ` +
    `${feed.events.length} events and ${feed.polls.length} reads of the feed, ` +
    `checked in ${((performance.now() - began) / 1000).toFixed(1)} s`)
  report.notes.push(
    `${faults.kill} processes killed, ${faults.pause} paused, ${faults.cut} times all connections to the database cut`)
}

type Fault = 'kill' | 'pause' | 'cut'

/** Injects faults, one after the other, each kind once before any comes again. @returns how many of each kind */
async function injectFaults (
  targets: Target[], serverUrl: string | undefined, { seconds, pause }: Timing, calm: () => Promise<void>
): Promise<Record<Fault, number>> {
  const counts: Record<Fault, number> = { kill: 0, pause: 0, cut: 0 }
  const kinds: Fault[] = serverUrl === undefined ? ['kill', 'pause'] : ['kill', 'pause', 'cut']
  const end = Date.now() + seconds * 1000
  for (let i = 0; i < kinds.length || Date.now() < end; i++) {
    await calm()
    const kind = i < kinds.length ? kinds[i]! : kinds[randomInt(kinds.length)]!
    const target = targets[randomInt(targets.length)]!
    counts[kind]++
    if (kind === 'cut') await cutConnections(serverUrl!)
    else if (kind === 'pause') await pauseProcess(processOf(target), randomInt(...pause))
    else if (target.workers > 0) await killWorker(target)
    else await killProcess(target)
  }
  await calm()
  return counts
}

async function killProcess (target: Target): Promise<void> {
  target.isUp = false
  await target.service.kill()
  await target.service.start()
  target.isUp = true
}

/** Clients go on with the other workers. The next fault comes when there is a new one, which may not serve yet. */
async function killWorker (target: Target): Promise<void> {
  const pid = processOf(target)
  process.kill(pid, 'SIGKILL')
  const { service, workers } = target
  while (service.workers().includes(pid) || service.workers().length < workers) await sleep(20)
}

/** Returns a process that serves requests. */
function processOf ({ service, workers }: Target): number {
  if (workers === 0) return service.pid
  const pids = service.workers()
  return pids[randomInt(pids.length)]!
}

/** Its transactions and locks stay, and clients wait for it. */
async function pauseProcess (pid: number, ms: number): Promise<void> {
  process.kill(pid, 'SIGSTOP')
  await sleep(ms)
  process.kill(pid, 'SIGCONT')
}

/** Ends all sessions of the database, as an administrator or a failover does. */
async function cutConnections (url: string): Promise<void> {
  const session = new pg.Client({ connectionString: url })
  await session.connect()
  await session.query(`
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()`)
  await session.end()
}
