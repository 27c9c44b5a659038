import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { openDatabase } from '../../src/database/open-database.ts'
import { startPostgres } from '../support/postgres.ts'
import { createPostgresDatabase, type ScenarioContext } from './harness.ts'

/**
 * Checks that the service acknowledges a write only after the system synced it to the disk. The settings of the
 * committing connection must ask for it, and the system calls must agree. Sequential writes are groups of one, each
 * with an fdatasync.
 */
export async function durability (context: ScenarioContext): Promise<void> {
  const { quick, report, start, openStore } = context
  const sqlite = report.database === 'SQLite'
  const url = sqlite ? context.sqliteUrl() : await startOwnServer(context)
  const service = await start({ DATABASE_URL: url })
  const { client } = await openStore(() => service.port)
  const writes = quick ? 20 : 200

  for (const [setting, wanted] of Object.entries(await settingsOf(url))) {
    if (!wanted.ok) report.violations.push(`the committing connection has ${setting} = ${wanted.value}`)
  }
  const counter = sqlite ? await countCalls(service.pid) : await countWalSyncs(url)
  if (counter === undefined) {
    report.notes.push('skipped: fdatasync is not counted, because strace is not installed or may not attach')
    return
  }
  for (let i = 0; i < writes; i++) {
    const { status } = await client.send({ method: 'POST', path: '/messages', body: { message: `durable ${i}` } })
    if (status === 201) report.checked++
  }
  // PostgreSQL publishes the statistics of a connection when it ends.
  if (!sqlite) await service.kill()
  const synced = await counter(report.checked)
  report.rounds++
  report.notes.push(`${report.checked} groups, ${synced} syncs of the ${sqlite ? 'process' : 'write-ahead log'}`)
  if (report.checked !== writes) report.violations.push(`${report.checked} of ${writes} writes were acknowledged`)
  if (synced < report.checked) {
    report.violations.push(`${report.checked} groups were acknowledged after ${synced} syncs`)
  }
}

/** Starts a server for this scenario, because PostgreSQL counts the syncs of all databases together. */
async function startOwnServer ({ atEnd }: ScenarioContext): Promise<string> {
  const server = await startPostgres()
  atEnd(async () => { await server.stop() })
  return await createPostgresDatabase(server.url)
}

/** Reads the settings on a connection that commits, opened as the service opens it. */
async function settingsOf (url: string): Promise<Record<string, { value: string, ok: boolean }>> {
  const database = await openDatabase({ url, pool: 2, timeout: 5_000 })
  try {
    return await database.prisma.$transaction(async (prisma) => {
      const read = async (sql: string): Promise<string> => {
        const [row = {}] = await prisma.$queryRawUnsafe<Array<Record<string, unknown>>>(sql)
        return String(Object.values(row)[0])
      }
      if (database.dialect.name === 'sqlite') {
        const synchronous = await read('PRAGMA synchronous')
        const journal = await read('PRAGMA journal_mode')
        return {
          synchronous: { value: synchronous, ok: synchronous === '2' || synchronous === '3' },
          journal_mode: { value: journal, ok: journal === 'wal' }
        }
      }
      const names = ['synchronous_commit', 'fsync', 'full_page_writes']
      const values = await Promise.all(names.map(async (name) => [name, await read(`SHOW ${name}`)] as const))
      return Object.fromEntries(values.map(([name, value]) => [name, { value, ok: value === 'on' }]))
    })
  } finally {
    await database.close()
  }
}

/** Waits until the count reaches the expected number, because statistics can be late. @returns the count */
type Counter = (expected: number) => Promise<number>

/** Counts a process's fdatasync and fsync calls with strace, if it is installed. */
async function countCalls (pid: number): Promise<Counter | undefined> {
  if (spawnSync('strace', ['-V']).status !== 0) return undefined
  const strace = spawn('strace', ['-f', '-q', '-e', 'trace=fdatasync,fsync', '-p', String(pid)], {
    stdio: ['ignore', 'ignore', 'pipe']
  })
  let output = ''
  strace.stderr.setEncoding('utf8').on('data', (text: string) => { output += text })
  await sleep(500)
  if (strace.exitCode !== null) return undefined
  return async () => {
    await sleep(200)
    strace.kill('SIGINT')
    await once(strace, 'close')
    // A call that another thread interrupts is printed in two lines.
    return output.split('\n').filter((line) => /(fdatasync|fsync)\(/.test(line)).length
  }
}

/** An idle process of PostgreSQL publishes its statistics within this time. */
const STATISTICS_TIMEOUT_MS = 12_000

/** Counts the syncs of the write-ahead log in PostgreSQL's own statistics. */
async function countWalSyncs (url: string): Promise<Counter> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const read = async (): Promise<number> => {
    const sql = "SELECT coalesce(sum(fsyncs), 0)::int AS n FROM pg_stat_io WHERE object = 'wal'"
    const { rows: [row] } = await client.query(sql)
    return row.n
  }
  await sleep(1_500)
  const before = await read()
  return async (expected) => {
    const deadline = Date.now() + STATISTICS_TIMEOUT_MS
    let synced = 0
    do {
      await sleep(250)
      synced = await read() - before
    } while (synced < expected && Date.now() < deadline)
    await client.end()
    return synced
  }
}
