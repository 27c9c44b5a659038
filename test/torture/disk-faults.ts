import { spawnSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Service } from './service.ts'
import { lockWrites, type ScenarioContext, type Store } from './harness.ts'
import { repeatWrites, verifyStore } from './verify.ts'
import { startWorkload } from './workload.ts'

/** Limits the recovery after a fault. */
const RECOVERY_MS = 5_000

/** The short form gives a busy machine the time to read a request. */
const REQUEST_TIMEOUT_MS = { full: 1_000, quick: 5_000 }

interface Fault {
  name: string
  /** Begins the fault. @returns a function that ends it */
  begin: (service: Service, url: string) => Promise<() => Promise<void>>
}

const full: Fault = {
  name: 'SQLITE_FULL (max_page_count)',
  async begin (service) {
    await service.ask('fill')
    return async () => { await service.ask('empty') }
  }
}

/** A write beyond the limit fails with EFBIG, which SQLite reports as an I/O error. */
const limited: Fault = {
  name: 'SQLITE_IOERR_WRITE (file-size limit)',
  async begin ({ pid }) {
    // SQLite overwrites the write-ahead log again and again, so that the limit lies well within it.
    // It is no multiple of the page size, so that one page is torn.
    setFileSize(pid, '65000:unlimited')
    return async () => { setFileSize(pid, 'unlimited:unlimited') }
  }
}

const locked: Fault = {
  name: 'SQLITE_BUSY (another process writes)',
  begin: async (_service, url) => await lockWrites(url)
}

/**
 * Fills SQLite's disk, lets it fail, or locks the file from another process. The service must answer with clear errors,
 * lose nothing, and recover without a restart.
 */
export async function diskFaults ({
  quick,
  slack,
  report,
  freshUrl,
  start,
  openStore
}: ScenarioContext): Promise<void> {
  const url = await freshUrl()
  const requestTimeoutMs = REQUEST_TIMEOUT_MS[quick ? 'quick' : 'full']
  const settings = { DATABASE_URL: url, REQUEST_TIMEOUT_MS: String(requestTimeoutMs), LOG_LEVEL: 'fatal' }
  const service = await start(settings, { preload: true })
  const store = await openStore(() => service.port)
  const load = startWorkload(store, { workers: 16, retry: true, pause: 10 })

  const faults = [full, locked]
  if (spawnSync('prlimit', ['-V']).status === 0) faults.push(limited)
  else report.notes.push('skipped: the file-size limit, because prlimit is not installed')

  for (let round = 0; round < (quick ? 1 : 5); round++) {
    for (const fault of faults) {
      await sleep(300)
      await injectFault(fault)
      report.rounds++
    }
  }

  const lost = await load.stop()
  if (lost > 0) report.violations.push(`${lost} clients got no answer`)
  await repeatWrites(store, report, 300)
  await verifyStore(url, store, report)

  async function injectFault ({ name, begin }: Fault): Promise<void> {
    const end = await begin(service, url)
    const since = load.replies.length
    await sleep(quick ? requestTimeoutMs + 2_000 : 4_000)
    if (service.exitReason() !== undefined) throw new Error(`${name}: the service ended with ${service.exitReason()}`)
    const replies = load.replies.slice(since)
    const refused = replies.filter(({ status }) => status === 503)
    const slowest = Math.max(0, ...refused.map(({ took }) => took))
    report.notes.push(
      `${name}: ${refused.length} of ${replies.length} answers were 503, the slowest after ${slowest.toFixed(0)} ms`
    )
    if (refused.length === 0) report.violations.push(`${name}: no write was refused, so that the fault had no effect`)
    for (const { body } of refused) {
      if (body?.code !== 'database_unavailable') report.violations.push(`${name}: refused with ${body?.code}`)
    }
    if (slowest > slack * (2 * requestTimeoutMs + 1_500)) {
      report.violations.push(`${name}: a 503 took ${slowest.toFixed(0)} ms`)
    }
    await checkRead(name, store)
    await end()
    await checkRecovery(name, store)
  }

  /** A read needs no space and no lock. */
  async function checkRead (name: string, { client }: Store): Promise<void> {
    const { status, took } = await client.send({ method: 'GET', path: '/pets' })
    if (status !== 200 || took > slack * 1_000) {
      report.violations.push(`${name}: a read is answered ${status} after ${took.toFixed(0)} ms`)
    }
  }

  async function checkRecovery (name: string, { client }: Store): Promise<void> {
    const deadline = Date.now() + slack * RECOVERY_MS
    for (;;) {
      // The ledger does not contain accounts, so that this write does not disturb it.
      const { status } = await client.send({ method: 'POST', path: '/accounts', body: { name: 'After the fault' } })
      if (status === 201) return
      if (Date.now() > deadline) {
        report.violations.push(`${name}: writes are answered ${status} ${slack * RECOVERY_MS} ms after it ended`)
        return
      }
      await sleep(50)
    }
  }
}

function setFileSize (pid: number, limit: string): void {
  const { status, stderr } = spawnSync('prlimit', ['--pid', String(pid), `--fsize=${limit}`], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`prlimit: ${stderr}`)
}
