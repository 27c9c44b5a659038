import { fork, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { ConfigSchema } from '../../src/config.ts'
import { nodeOptionsOf, ROOT } from '../support/cli.ts'
import { freePort } from '../support/port.ts'
import { TSX } from '../support/tsx.ts'
import type { Job, Load } from './load.ts'

export const SERVERS = ['petstore', 'baseline', 'prisma', 'floor'] as const
export type ServerName = typeof SERVERS[number]

export interface Server {
  name: ServerName
  port: number
  /** Reads what its process has used so far. */
  usage: () => Promise<Usage>
  stop: () => Promise<void>
}

export interface Usage {
  /** CPU time of all its threads, in µs. */
  cpu: number
  /** Resident size, in bytes. */
  rss: number
}

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url))
const PRELOAD = new URL('preload.mjs', import.meta.url).href

/** Returns the arguments of Node for a server. All have the options of petstore. */
function commandOf (name: ServerName): string[] {
  switch (name) {
    case 'petstore': return builtIn(ROOT)
    case 'baseline': return [...nodeOptionsOf(), TSX, here('servers/baseline-driver.ts')]
    case 'prisma': return [...nodeOptionsOf(), TSX, here('servers/prisma.ts')]
    case 'floor': return [...nodeOptionsOf(), TSX, here('servers/framework-overhead.ts')]
  }
}

/** Returns the command of a built version of petstore. */
export function builtIn (folder: string): string[] {
  const file = join(folder, 'dist/cli.js')
  if (!existsSync(file)) throw new Error(`There is no built version in ${folder}. Run \`npm run build\` there.`)
  return [...nodeOptionsOf(file), file, 'start']
}

export interface ServerOptions {
  /** The arguments of Node, if not those of the server's name. */
  command?: string[]
  environment?: Record<string, string> | undefined
}

/** Far longer than any start: a server that does not listen by then is stuck. */
const START_TIMEOUT_MS = 60_000
const STOP_TIMEOUT_MS = 15_000

/** Starts a server in a process of its own, with default settings except its port and its store. */
export async function startServer (
  name: ServerName, url: string, log: string, { command = commandOf(name), environment = {} }: ServerOptions = {}
): Promise<Server> {
  const port = await freePort()
  const file = openSync(log, 'a')
  const child = spawn(process.execPath, ['--import', PRELOAD, ...command], {
    env: { ...unset(process.env), ...environment, DATABASE_URL: url, PORT: String(port) },
    stdio: ['ignore', file, file, 'ipc']
  })
  closeSync(file)
  const deadline = Date.now() + START_TIMEOUT_MS
  while (!(await listens(port))) {
    if (child.exitCode !== null || Date.now() > deadline) {
      child.kill('SIGKILL')
      throw new Error(
        `${name} did not start (${child.exitCode ?? 'too slow'}): ${readFileSync(log, 'utf8').slice(-2_000)}`
      )
    }
    await sleep(5)
  }
  return {
    name,
    port,
    async usage () {
      child.send('usage')
      const [{ cpu, rss }] = await once(child, 'message') as [{ cpu: NodeJS.CpuUsage, rss: number }]
      return { cpu: cpu.user + cpu.system, rss }
    },
    stop: async () => { await end(child) }
  }
}

/** Returns the environment without petstore's own settings. */
function unset (environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !(name in ConfigSchema.properties)))
}

async function listens (port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' })
    socket
      .once('connect', () => {
        resolve(true)
      })
      .once('error', () => {
        resolve(false)
      })
      .once('connect', () => {
        socket.destroy()
      })
  })
}

async function end (child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const closed = once(child, 'exit')
  child.kill('SIGTERM')
  const killer = setTimeout(() => { child.kill('SIGKILL') }, STOP_TIMEOUT_MS)
  await closed
  clearTimeout(killer)
}

export interface Generator {
  run: (job: Job) => Promise<Load>
  stop: () => Promise<void>
}

/** Starts the process that makes the load. */
export function startGenerator (): Generator {
  const child = fork(here('load.ts'), { execArgv: [TSX] })
  const ended = new AbortController()
  child.once('exit', () => { ended.abort() })
  return {
    async run (job) {
      child.send(job)
      const [load] = await once(child, 'message', ended) as [Load]
      return load
    },
    stop: async () => { await end(child) }
  }
}
