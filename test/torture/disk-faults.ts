import { spawnSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Service } from './service.ts'
import { lock, type Stage, type Store } from './harness.ts'
import { repeat, verify } from './verify.ts'
import { startWorkload } from './workload.ts'

/** How long the service may take to be itself again, in ms. */
const RECOVERY_MS = 5_000

const REQUEST_TIMEOUT_MS = 1_000

interface Fault {
  name: string
  /** @returns what undoes it */
  begin: (service: Service, url: string) => Promise<() => Promise<void>>
}

const full: Fault = {
  name: 'SQLITE_FULL (max_page_count)',
  async begin (service) {
    await service.ask('fill')
    return async () => { await service.ask('empty') }
  }
}

/** Writing beyond the limit fails with EFBIG, which SQLite calls an I/O error. */
const limited: Fault = {
  name: 'SQLITE_IOERR_WRITE (file-size limit)',
  async begin ({ pid }) {
    // The write-ahead log is written over and over, so the limit lies well within it; no multiple of a page, so that one is torn.
    setFileSize(pid, '65000:unlimited')
    return async () => { setFileSize(pid, 'unlimited:unlimited') }
  }
}

const locked: Fault = {
  name: 'SQLITE_BUSY (another process writes)',
  begin: async (_service, url) => await lock(url)
}

/** SQLite's disk is full, fails, or is locked by another process: clear errors, nothing lost, recovery without a restart. */
export async function disk ({ quick, report, freshUrl, start, openStore }: Stage): Promise<void> {
  const url = await freshUrl()
  const service = await start({ DATABASE_URL: url, REQUEST_TIMEOUT_MS: String(REQUEST_TIMEOUT_MS), LOG_LEVEL: 'fatal' }, { preload: true })
  const store = await openStore(() => service.port)
  const load = startWorkload(store, { workers: 16, retry: true, pause: 10 })

  const faults = [full, locked]
  if (spawnSync('prlimit', ['-V']).status === 0) faults.push(limited)
  else report.notes.push('skipped: the file-size limit, because prlimit is not installed')

  for (let round = 0; round < (quick ? 1 : 5); round++) {
    for (const fault of faults) {
      await sleep(300)
      await suffer(fault)
      report.rounds++
    }
  }

  const lost = await load.stop()
  if (lost > 0) report.violations.push(`${lost} clients were never answered`)
  await repeat(store, report, 300)
  await verify(url, store, report)

  async function suffer ({ name, begin }: Fault): Promise<void> {
    const end = await begin(service, url)
    const since = load.replies.length
    await sleep(quick ? 1_800 : 4_000)
    if (service.fate() !== undefined) throw new Error(`${name}: the service ended with ${service.fate()}`)
    const replies = load.replies.slice(since)
    const refused = replies.filter(({ status }) => status === 503)
    const slowest = Math.max(0, ...refused.map(({ took }) => took))
    report.notes.push(`${name}: ${refused.length} of ${replies.length} answers were 503, the slowest after ${slowest.toFixed(0)} ms`)
    if (refused.length === 0) report.violations.push(`${name}: nothing was refused, so nothing was broken`)
    for (const { body } of refused) if (body?.code !== 'database_unavailable') report.violations.push(`${name}: refused with ${body?.code}`)
    if (slowest > 2 * REQUEST_TIMEOUT_MS + 1_500) report.violations.push(`${name}: a 503 took ${slowest.toFixed(0)} ms`)
    await reads(name, store)
    await end()
    await recovers(name, store)
  }

  /** Reading needs no space and no lock. */
  async function reads (name: string, { client }: Store): Promise<void> {
    const { status, took } = await client.send({ method: 'GET', path: '/pets' })
    if (status !== 200 || took > 1_000) report.violations.push(`${name}: a read is answered ${status} after ${took.toFixed(0)} ms`)
  }

  async function recovers (name: string, { client }: Store): Promise<void> {
    const deadline = Date.now() + RECOVERY_MS
    for (;;) {
      // Accounts have no books that this could upset.
      const { status } = await client.send({ method: 'POST', path: '/accounts', body: { name: 'After the fault' } })
      if (status === 201) return
      if (Date.now() > deadline) {
        report.violations.push(`${name}: writes are answered ${status} ${RECOVERY_MS} ms after it ended`)
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
