import { execFileSync } from 'node:child_process'
import { constants, copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { createCredential } from '../../src/accounts/api-key.ts'
import type { DatabaseName } from '../../src/database/dialect.ts'
import { migrate } from '../../src/database/migrations/migrate.ts'
import { SqliteConnection } from '../../src/database/sqlite/connection.ts'
import { startPostgres } from '../support/postgres.ts'
import { accountsOf, scopesOf, seedStatements, type Shape } from './seed.ts'
import type { Scope } from './requests.ts'

/** Stores with the same rows on one database. */
export interface Stores {
  scopes: Scope[]
  /** Creates a copy for one server. */
  copy: (name: string) => Promise<Store>
  /** CPU time of the database's processes so far in µs; 0 without any, `undefined` if the system does not report it. */
  cpu: () => number | undefined
  close: () => Promise<void>
}

export interface Store {
  url: string
  query: (sql: string) => Promise<Row[]>
  /** The size of SQLite's write-ahead log in bytes. */
  walSize: () => number
  remove: () => Promise<void>
}

export type Row = Record<string, unknown>

/** The interval between two checks for pending messages. */
const SETTLED_MS = 20

/** Waits until no message is pending. */
export async function untilSettled (store: Store): Promise<void> {
  while ((await store.query("SELECT 1 AS waits FROM messages WHERE status = 'queued' LIMIT 1")).length > 0) {
    await sleep(SETTLED_MS)
  }
}

export interface StoreOptions {
  pets: number
  shape?: Shape
  /** Whether the planner has statistics. By default only PostgreSQL's, whose autovacuum collects them. */
  analyzed?: boolean
  /** Applies the migrations. Those of this folder by default. */
  migrate?: (url: string) => Promise<unknown>
}

type Prepare = (url: string, execute: (sql: string) => Promise<unknown>) => Promise<void>

/** The shapes that need many pets, and their number. */
const LARGE: Shape[] = ['contended', 'many']
const MANY_PETS = 100_000

export async function openStores (
  database: DatabaseName, folder: string, { pets, shape = 'usual', ...options }: StoreOptions
): Promise<Stores> {
  const credentials = Array.from({ length: accountsOf(shape) }, createCredential)
  const seed = { shape, pets: LARGE.includes(shape) ? Math.max(pets, MANY_PETS) : pets, credentials }
  const scopes = scopesOf(seed)
  const analyzed = options.analyzed ?? database === 'postgresql'
  const prepare: Prepare = async (url, execute) => {
    await (options.migrate ?? migrate)(url)
    for (const statement of seedStatements(database, seed)) await execute(statement)
    if (analyzed) await execute(database === 'sqlite' ? 'ANALYZE' : 'VACUUM ANALYZE')
  }
  return database === 'sqlite'
    ? await sqliteStores(folder, scopes, prepare)
    // Autovacuum would collect statistics while a store that has none is measured.
    : await postgresqlStores(scopes, prepare, analyzed ? {} : { autovacuum: 'off' })
}

async function sqliteStores (folder: string, scopes: Scope[], prepare: Prepare): Promise<Stores> {
  mkdirSync(folder, { recursive: true })
  const template = join(folder, 'template.db')
  await prepare(`file:${template}`, async (sql) => {
    const database = new SqliteConnection(template)
    database.runScript(sql)
    // On Node 20, a closed file can keep its log. Only the file is copied.
    database.runScript('PRAGMA wal_checkpoint(TRUNCATE)')
    await database.close()
  })
  return {
    scopes,
    cpu: () => 0,
    async copy (name) {
      const file = join(folder, `${name}.db`)
      copyFileSync(template, file, constants.COPYFILE_FICLONE)
      return {
        url: `file:${file}`,
        async query (sql) {
          const database = new SqliteConnection(file)
          try {
            return database.all(sql, []) as Row[]
          } finally {
            await database.close()
          }
        },
        walSize: () => statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0,
        async remove () {
          for (const suffix of ['', '-wal', '-shm']) rmSync(file + suffix, { force: true })
        }
      }
    },
    close: async () => { rmSync(template) }
  }
}

async function postgresqlStores (
  scopes: Scope[], prepare: Prepare, settings: Record<string, string>
): Promise<Stores> {
  const server = await startPostgres(settings)
  const urlOf = (name: string): string => Object.assign(new URL(server.url), { pathname: `/${name}` }).href
  try {
    await onServer(server.url, 'CREATE DATABASE bench_template')
    const template = urlOf('bench_template')
    await prepare(template, async (sql) => await onServer(template, sql))
    const [file] = await onServer(server.url, "SELECT pg_read_file('postmaster.pid') AS text")
    const root = parseInt(String(file!.text))
    return {
      scopes,
      cpu: () => treeCpu(root),
      async copy (name) {
        await onServer(server.url, `CREATE DATABASE ${name} TEMPLATE bench_template`)
        // The system writes the copy to the disk now, not during a measurement.
        await onServer(server.url, 'CHECKPOINT')
        return {
          url: urlOf(name),
          query: async (sql) => await onServer(urlOf(name), sql),
          walSize: () => 0,
          remove: async () => { await onServer(server.url, `DROP DATABASE ${name} WITH (FORCE)`) }
        }
      },
      close: server.stop
    }
  } catch (error) {
    await server.stop()
    throw error
  }
}

async function onServer (url: string, sql: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query<Row>(sql)).rows
  } finally {
    await client.end()
  }
}

/** Clock ticks a second in /proc, the same on every Linux that Node runs on. */
const TICKS = 100

/** Reads the CPU time of a process and its children in µs, with ended ones if the system counts them. */
function treeCpu (root: number): number | undefined {
  if (process.platform === 'win32') return undefined
  const processes = process.platform === 'linux' ? fromProc() : fromPs()
  return processes.reduce((sum, { pid, parent, cpu, ended }) =>
    sum + (pid === root ? cpu + ended : parent === root ? cpu : 0), 0)
}

interface Process { pid: number, parent: number, cpu: number, ended: number }

function fromProc (): Process[] {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).flatMap((pid) => {
    try {
      // proc_pid_stat(5), after the name in parentheses: state, ppid, …, utime, stime, cutime, cstime.
      const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)!.split(' ')
      const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields
        .slice(11, 15)
        .map((ticks) => (Number(ticks) * 1e6) / TICKS)
      return [{ pid: Number(pid), parent: Number(fields[1]), cpu: user + system, ended: endedUser + endedSystem }]
    } catch {
      return [] // It has ended.
    }
  })
}

/** Reads `ps` on macOS and BSD, which reports hundredths of a second, without ended processes. */
function fromPs (): Process[] {
  return execFileSync('ps', ['-A', '-o', 'pid=,ppid=,time='], { encoding: 'utf8' }).trim().split('\n').map((line) => {
    const [pid, parent, time = ''] = line.trim().split(/\s+/)
    const seconds = time.split(/[-:]/).reduce((sum, part) => sum * 60 + Number(part), 0)
    return { pid: Number(pid), parent: Number(parent), cpu: seconds * 1e6, ended: 0 }
  })
}
