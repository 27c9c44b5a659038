import { setTimeout as sleep } from 'node:timers/promises'
import { startPostgres, type Postgres } from '../support/postgres.ts'
import { statusOf } from './service.ts'
import { createPostgresDatabase, type ScenarioContext } from './harness.ts'
import { repeatWrites, verifyStore } from './verify.ts'
import { startWorkload } from './workload.ts'

/** The short form runs beside other tests: a healthy database can need seconds to respond. */
const REQUEST_TIMEOUT_MS = { full: 2_000, quick: 10_000 }

/** Answers to commits just before the fault can arrive this long after it. */
const LATE_ANSWERS_MS = { full: 300, quick: 2_000 }

/** Limits the recovery after the database's return. A server that was killed replays its log first. */
const RECOVERY_MS = 15_000

type ServerAction = (server: Postgres) => Promise<void>

/** Kills PostgreSQL under load, keeps it down, or suspends it. The service must survive and recover. */
export async function databaseOutage ({
  quick,
  slack,
  report,
  start,
  openStore,
  atEnd
}: ScenarioContext): Promise<void> {
  const requestTimeoutMs = REQUEST_TIMEOUT_MS[quick ? 'quick' : 'full']
  // Limits the time of a refusal: the service waits for the database first.
  const refusalTimeoutMs = slack * (2 * requestTimeoutMs + 2_000)
  const server = await startPostgres()
  atEnd(async () => {
    await server.stop()
  })
  const url = await createPostgresDatabase(server.url)
  const service = await start({
    DATABASE_URL: url,
    REQUEST_TIMEOUT_MS: String(requestTimeoutMs),
    LOG_LEVEL: 'fatal'
  })
  const { pid } = service
  const store = await openStore(() => service.port)
  const load = startWorkload(store, { workers: 24, retry: true, pause: 10 })

  for (let round = 0; round < (quick ? 1 : 5); round++) {
    await injectFault('killed, and restarted at once', 0, kill, restart)
    await injectFault('suspended', quick ? 3_000 : 10_000, suspend, resume)
  }
  await injectFault('down', quick ? 3_000 : 60_000, kill, restart)

  const lost = await load.stop()
  if (lost > 0) report.violations.push(`${lost} clients got no answer`)
  if (service.pid !== pid) report.violations.push('the service had to be started again')
  await repeatWrites(store, report, 300)
  await verifyStore(url, store, report)

  async function injectFault (name: string, ms: number, begin: ServerAction, end: ServerAction): Promise<void> {
    await sleep(500)
    const before = load.replies.length
    await begin(server)
    // Answers to commits just before the fault are still on their way.
    await sleep(LATE_ANSWERS_MS[quick ? 'quick' : 'full'])
    const since = load.replies.length
    if (ms > 0) {
      await sleep(ms / 2)
      const [live, ready] = await Promise.all([
        statusOf(service.port, '/livez'),
        statusOf(service.port, '/readyz', refusalTimeoutMs)
      ])
      if (live !== 200) report.violations.push(`${name}: /livez is answered ${live}`)
      if (ready !== 503) report.violations.push(`${name}: /readyz is answered ${ready}`)
      const read = await store.client.send({ method: 'GET', path: '/pets' })
      if (read.status !== 503) report.violations.push(`${name}: a read is answered ${read.status}`)
      if (read.took > refusalTimeoutMs) {
        report.violations.push(`${name}: a read was refused after ${read.took.toFixed(0)} ms`)
      }
      await sleep(ms / 2)
    }
    const replies = load.replies.slice(since)
    await end(server)
    await checkRecovery(name)
    report.rounds++

    const refused = load.replies.slice(before).filter(({ status }) => status === 503)
    const slowest = Math.max(0, ...refused.map(({ took }) => took))
    report.notes.push(`${name}: ${refused.length} answers were 503, the slowest after ${slowest.toFixed(0)} ms`)
    for (const { body } of refused) {
      if (body?.code !== 'database_unavailable') report.violations.push(`${name}: refused with ${body?.code}`)
    }
    if (slowest > refusalTimeoutMs) report.violations.push(`${name}: a 503 took ${slowest.toFixed(0)} ms`)
    const done = replies.filter(
      ({ status, headers }) => status > 0 && status < 300 && headers['idempotency-replayed'] === undefined
    ).length
    if (ms > 0 && done > 0) report.violations.push(`${name}: ${done} writes were acknowledged without a database`)
  }

  async function checkRecovery (name: string): Promise<void> {
    const deadline = Date.now() + slack * RECOVERY_MS
    for (;;) {
      const ready = await statusOf(service.port, '/readyz', refusalTimeoutMs)
      const body = { name: 'After the fault' }
      const { status } = await store.client.send({ method: 'POST', path: '/accounts', body })
      if (ready === 200 && status === 201) return
      if (Date.now() > deadline) {
        report.violations.push(
          `${name}: ${slack * RECOVERY_MS} ms after the database's return /readyz is answered ${ready}, and a write ${status}`
        )
        return
      }
      await sleep(100)
    }
  }
}

const kill = async (server: Postgres): Promise<void> => { await server.kill() }

/** Restarts the server. Processes of the killed one can live for a moment longer and block the start. */
async function restart (server: Postgres): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await server.restart()
      return
    } catch (error) {
      if (attempt === 20) throw error
    }
    await sleep(250)
  }
}

/** Connections stay open, but no byte arrives any more, as after a network failure. */
async function suspend (server: Postgres): Promise<void> {
  server.signal('SIGSTOP')
}

async function resume (server: Postgres): Promise<void> {
  server.signal('SIGCONT')
}
