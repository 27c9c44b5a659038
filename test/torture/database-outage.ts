import { setTimeout as sleep } from 'node:timers/promises'
import { startPostgres, type Postgres } from '../support/postgres.ts'
import { statusOf } from './service.ts'
import { createPostgresDatabase, type Stage } from './harness.ts'
import { repeat, verify } from './verify.ts'
import { startWorkload } from './workload.ts'

const REQUEST_TIMEOUT_MS = 2_000

/** A refusal may take as long as the service waits for the database, and a little. */
const SECONDS_MS = 2 * REQUEST_TIMEOUT_MS + 2_000

/** Until nothing of a database that is gone can still be answered, in ms. */
const SETTLED_MS = 300

/** After the database's return, in ms; a server that was killed reads its log first. */
const RECOVERY_MS = 15_000

/** PostgreSQL is killed under load, stays away, or falls silent; the service outlives all of it. */
export async function away ({ quick, report, start, openStore, atEnd }: Stage): Promise<void> {
  const server = await startPostgres()
  atEnd(async () => { await server.stop() })
  const url = await createPostgresDatabase(server.url)
  const service = await start({ DATABASE_URL: url, REQUEST_TIMEOUT_MS: String(REQUEST_TIMEOUT_MS), LOG_LEVEL: 'fatal' })
  const { pid } = service
  const store = await openStore(() => service.port)
  const load = startWorkload(store, { workers: 24, retry: true, pause: 10 })

  for (let round = 0; round < (quick ? 1 : 5); round++) {
    await suffer('killed, and back at once', 0, kill, revive)
    await suffer('silent', quick ? 3_000 : 10_000, silence, wake)
  }
  await suffer('away', quick ? 3_000 : 60_000, kill, revive)

  const lost = await load.stop()
  if (lost > 0) report.violations.push(`${lost} clients were never answered`)
  if (service.pid !== pid) report.violations.push('the service had to be started again')
  await repeat(store, report, 300)
  await verify(url, store, report)

  async function suffer (name: string, ms: number, begin: (server: Postgres) => Promise<void>, end: (server: Postgres) => Promise<void>): Promise<void> {
    await sleep(500)
    const before = load.replies.length
    await begin(server)
    // What was committed a moment before is still on its way to its client.
    await sleep(SETTLED_MS)
    const since = load.replies.length
    if (ms > 0) {
      await sleep(ms / 2)
      const [live, ready] = await Promise.all([statusOf(service.port, '/livez'), statusOf(service.port, '/readyz', SECONDS_MS)])
      if (live !== 200) report.violations.push(`${name}: /livez is answered ${live}`)
      if (ready !== 503) report.violations.push(`${name}: /readyz is answered ${ready}`)
      const read = await store.client.send({ method: 'GET', path: '/pets' })
      if (read.status !== 503) report.violations.push(`${name}: a read is answered ${read.status}`)
      if (read.took > SECONDS_MS) report.violations.push(`${name}: a read was refused after ${read.took.toFixed(0)} ms`)
      await sleep(ms / 2)
    }
    const replies = load.replies.slice(since)
    await end(server)
    await recovers(name)
    report.rounds++

    const refused = load.replies.slice(before).filter(({ status }) => status === 503)
    const slowest = Math.max(0, ...refused.map(({ took }) => took))
    report.notes.push(`${name}: ${refused.length} answers were 503, the slowest after ${slowest.toFixed(0)} ms`)
    for (const { body } of refused) if (body?.code !== 'database_unavailable') report.violations.push(`${name}: refused with ${body?.code}`)
    if (slowest > SECONDS_MS) report.violations.push(`${name}: a 503 took ${slowest.toFixed(0)} ms`)
    const done = replies.filter(({ status, headers }) => status > 0 && status < 300 && headers['idempotency-replayed'] === undefined).length
    if (ms > 0 && done > 0) report.violations.push(`${name}: ${done} writes were acknowledged without a database`)
  }

  async function recovers (name: string): Promise<void> {
    const deadline = Date.now() + RECOVERY_MS
    for (;;) {
      const ready = await statusOf(service.port, '/readyz', SECONDS_MS)
      const { status } = await store.client.send({ method: 'POST', path: '/accounts', body: { name: 'After the fault' } })
      if (ready === 200 && status === 201) return
      if (Date.now() > deadline) {
        report.violations.push(`${name}: ${RECOVERY_MS} ms after the database's return /readyz is answered ${ready}, and a write ${status}`)
        return
      }
      await sleep(100)
    }
  }
}

const kill = async (server: Postgres): Promise<void> => { await server.kill() }

/** Processes of the dead server may live on for a moment and keep its successor out. */
async function revive (server: Postgres): Promise<void> {
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

/** Connections stay open and nothing comes any more: what a lost network looks like. */
async function silence (server: Postgres): Promise<void> {
  server.signal('SIGSTOP')
}

async function wake (server: Postgres): Promise<void> {
  server.signal('SIGCONT')
}
