import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import {
  chmodSync, closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync
} from 'node:fs'
import { get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import pg from 'pg'
import { accountToRunAs, own, processesOf } from '../support/postgres.ts'

const FILES = fileURLToPath(new URL('../../docs/how-to/deployment/patroni/', import.meta.url))

/** The programs, as Debian's packages patroni, etcd-server, haproxy and postgresql-15 install them. */
const PROGRAMS = ['/usr/bin/patroni', '/usr/bin/etcd', '/usr/sbin/haproxy', '/usr/lib/postgresql/15/bin/postgres']

/** Far longer than any of the steps takes on a busy machine. */
const STEP_TIMEOUT_MS = 300_000

/** The members of the cluster and their numbers, as the files name them. */
const NODES = [1, 2, 3] as const

export type Node = typeof NODES[number]

export interface Cluster {
  /** The URL of the service's database, through HAProxy. */
  url: string
  /** Returns the node that Patroni calls the primary, if there is one. */
  primary: () => Promise<Node | undefined>
  /** Sends a signal to Patroni and PostgreSQL on a node, as if its host was lost or paused. */
  signal: (node: Node, signal: NodeJS.Signals) => void
  start: (node: Node) => void
  switchOver: () => Promise<void>
  /** Waits until all nodes run, and one is a synchronous standby. */
  healthy: () => Promise<void>
}

/** Returns the programs that are not installed. */
export function missingPrograms (): string[] {
  return [...PROGRAMS, ...process.platform === 'linux' ? [] : ['Linux']].filter((path) => !existsSync(path))
}

/** Starts etcd, Patroni and HAProxy with the files of the documentation, each host on a loopback address of its own. */
export async function startCluster (atEnd: (action: () => unknown) => void): Promise<Cluster> {
  const account = accountToRunAs()
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'petstore-patroni-'))
  chmodSync(folder, 0o711)
  // The ports are those of the files. A network of its own keeps them apart from those of other programs.
  const network = `127.${randomInt(1, 255)}.${randomInt(1, 255)}.`
  const patronis = new Map<Node, ChildProcess>()
  const others: ChildProcess[] = []
  const logs = join(folder, 'log')

  atEnd(() => {
    for (const node of patronis.keys()) signal(node, 'SIGKILL')
    for (const child of others) child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
  })

  const folderOf = (node: Node): string => join(folder, `node${node}`)
  const configOf = (node: Node): string => join(folderOf(node), 'patroni.yml')

  /** Returns a file with the addresses, folders and passwords of this cluster. */
  const adapted = (name: string, node: Node): string => readFileSync(join(FILES, name), 'utf8')
    .replaceAll('10.0.0.0/24', '127.0.0.0/8').replaceAll('10.0.0.', network)
    .replaceAll('127.0.0.1:5000', `${network}1:5000`)
    .replaceAll('/var/lib/postgresql/15/petstore', join(folderOf(node), 'data'))
    .replaceAll('/var/lib/postgresql', folderOf(node)).replaceAll('/var/run/postgresql', folderOf(node))
    .replaceAll('change-me', password)

  /** Reads the settings of the first node, for another one. The list of all members stays. */
  const settingsOf = (name: string, node: Node): Record<string, string> => Object.fromEntries(
    [...adapted(name, node).matchAll(/^(\w+)=(.*)$/gm)].map(([, key, value]) => [key!, key === 'ETCD_INITIAL_CLUSTER'
      ? value!
      : value!.replace('node1', `node${node}`).replaceAll(`${network}11`, `${network}1${node}`)]))

  const password = randomBytes(12).toString('hex')

  function launch (command: string, args: string[], env: Record<string, string> = {}): ChildProcess {
    const { PATH = '' } = process.env
    const log = openSync(logs, 'a')
    const child = spawn(command, args, {
      ...account, cwd: folder, env: { PATH, HOME: folder, LC_ALL: 'C.UTF-8', ...env }, stdio: ['ignore', log, log]
    })
    closeSync(log)
    return child
  }

  function start (node: Node): void {
    patronis.set(node, launch('/usr/bin/patroni', [configOf(node)], settingsOf('patroni.env', node)))
  }

  function signal (node: Node, signal: NodeJS.Signals): void {
    for (const pid of [...processesOf(patronis.get(node)?.pid), ...processesOf(postmasterOf(folderOf(node)))]) {
      try {
        process.kill(pid, signal)
      } catch {
        // It has ended.
      }
    }
  }

  async function primary (): Promise<Node | undefined> {
    const answers = await Promise.all(NODES.map(async (node) => await ask(`http://${network}1${node}:8008/primary`)))
    // It answers 200 with the lease already, before PostgreSQL is promoted.
    return NODES.find((_, i) => answers[i]!.status === 200 && /"role": "(master|primary)"/.test(answers[i]!.text))
  }

  async function healthy (): Promise<void> {
    await until('the cluster is not healthy', async () => {
      const node = await primary()
      const { text } = node === undefined ? { text: '{}' } : await ask(`http://${network}1${node}:8008/cluster`)
      const { members = [] } = JSON.parse(text) as { members?: Array<{ role: string, state: string }> }
      const running = members.filter(({ state }) => state === 'running' || state === 'streaming')
      return running.length === NODES.length && running.some(({ role }) => role === 'sync_standby')
    })
  }

  async function until (problem: string, holds: () => Promise<boolean>): Promise<void> {
    for (const deadline = Date.now() + STEP_TIMEOUT_MS; !await holds();) {
      if (Date.now() > deadline) throw new Error(`${problem}: ${readFileSync(logs, 'utf8').slice(-6_000)}`)
      await sleep(100)
    }
  }

  for (const node of NODES) {
    mkdirSync(folderOf(node), { mode: 0o700 })
    writeFileSync(configOf(node), adapted('patroni.yml', node))
    own(account, folderOf(node))
    const ETCD_DATA_DIR = join(folderOf(node), 'etcd')
    others.push(launch('/usr/bin/etcd', [], { ...settingsOf('etcd.env', node), ETCD_DATA_DIR }))
  }
  await until('etcd is not healthy', async () => (await ask(`http://${network}11:2379/health`)).text.includes('"true"'))
  const proxy = join(folder, 'haproxy.cfg')
  writeFileSync(proxy, adapted('haproxy.cfg', 1))
  others.push(launch('/usr/sbin/haproxy', ['-db', '-f', proxy]))
  for (const node of NODES) start(node)
  await healthy()

  const server = `${network}1:5000`
  const admin = new pg.Client({ connectionString: `postgresql://postgres:${password}@${server}/postgres` })
  await admin.connect()
  await admin.query(`CREATE ROLE petstore LOGIN PASSWORD '${password}'`)
  await admin.query('CREATE DATABASE petstore OWNER petstore')
  await admin.end()
  return {
    url: `postgresql://petstore:${password}@${server}/petstore`,
    primary,
    signal,
    start,
    async switchOver () {
      const args = ['-c', configOf(1), 'switchover', 'petstore', '--force']
      await promisify(execFile)('/usr/bin/patronictl', args)
    },
    healthy
  }
}

/** Returns the id of the server's main process, which Patroni does not wait for. */
function postmasterOf (folder: string): number | undefined {
  const file = join(folder, 'data/postmaster.pid')
  return existsSync(file) ? Number(readFileSync(file, 'utf8').split('\n')[0]) : undefined
}

async function ask (url: string): Promise<{ status: number, text: string }> {
  const none = { status: 0, text: '' }
  return await new Promise((resolve) => {
    const request = get(url, { agent: false, timeout: 1_000 }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => { text += chunk })
        .on('end', () => { resolve({ status: response.statusCode ?? 0, text }) }).on('error', () => { resolve(none) })
    }).on('timeout', () => { request.destroy() }).on('error', () => { resolve(none) })
  })
}
