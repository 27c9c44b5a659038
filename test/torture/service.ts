import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { get } from 'node:http'
import { fileURLToPath } from 'node:url'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../support/port.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const PRELOAD = fileURLToPath(new URL('preload.mjs', import.meta.url))

/**
 * Without the options that tap gives to every child: what they load catches signals, and the service would
 * end at some that it survives.
 */
const PLAIN_NODE: [string, ...string[]] = process.platform === 'win32' ? [process.execPath] : ['env', '-u', 'NODE_OPTIONS', process.execPath]

/** Far more than a start takes; a service that is not ready by then is stuck. */
const START_TIMEOUT_MS = 120_000

/** The real service, as a process of its own. */
export interface Service {
  /** Another one after each start. */
  port: number
  pid: number
  /** Everything it wrote, to both of its outputs. */
  output: () => string
  /** Starts it again, on the same database, after it ended. */
  start: () => Promise<void>
  /** Starts it, and does not wait until it serves. */
  launch: () => Promise<void>
  signal: (signal: NodeJS.Signals) => void
  /** What ended it, and its last words; `undefined` while it runs. */
  fate: () => string | undefined
  /** Waits for its end. @returns the exit code, or the signal that ended it */
  ended: () => Promise<number | NodeJS.Signals>
  kill: () => Promise<void>
  /** Asks `preload.mjs` in the process for something. */
  ask: (question: string) => Promise<Record<string, number>>
}

export interface ServiceOptions {
  /** Load `preload.mjs`, which can be asked. */
  preload?: boolean
}

let built = false

/** Compiles src where that was not done since it changed. */
function build (): void {
  if (built) return
  const { status } = spawnSync(process.execPath, ['scripts/prepare.mjs', 'build'], { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] })
  if (status !== 0) throw new Error('the service cannot be built')
  built = true
}

export async function startService (settings: Record<string, string>, { preload = false }: ServiceOptions = {}): Promise<Service> {
  build()
  let child: ChildProcess
  let exited: Promise<number | NodeJS.Signals>
  let output = ''

  async function launch (): Promise<void> {
    service.port = await freePort()
    const [command, ...first] = PLAIN_NODE
    child = spawn(command, [...first, ...preload ? ['--expose-gc', '--import', PRELOAD] : [], 'dist/cli.js', 'start'], {
      cwd: ROOT,
      env: {
        PATH: process.env['PATH'],
        LOG_LEVEL: 'error',
        DELIVERY: 'false',
        MIGRATE_ON_START: 'true',
        ...settings,
        PORT: String(service.port)
      },
      stdio: ['ignore', 'pipe', 'pipe', ...preload ? ['ipc' as const] : []]
    })
    service.pid = child.pid!
    for (const stream of [child.stdout!, child.stderr!]) {
      stream.setEncoding('utf8').on('data', (text: string) => { output += text })
    }
    exited = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | NodeJS.Signals)
  }

  async function start (): Promise<void> {
    await launch()
    const deadline = Date.now() + START_TIMEOUT_MS
    while (await statusOf(service.port, '/readyz') !== 200) {
      if (child.exitCode !== null || child.signalCode !== null) throw new Error(`the service ended while starting: ${output.slice(-2000)}`)
      if (Date.now() > deadline) throw new Error(`the service does not become ready: ${output.slice(-2000)}`)
      await sleep(15)
    }
  }

  const service: Service = {
    port: 0,
    pid: 0,
    output: () => output,
    start,
    launch,
    signal (signal) { child.kill(signal) },
    fate () {
      const end = child.exitCode ?? child.signalCode
      return end === null ? undefined : `${end}: ${output.slice(-2000)}`
    },
    ended: async () => await exited,
    async kill () {
      child.kill('SIGKILL')
      await exited
    },
    async ask (question) {
      const answer = once(child, 'message')
      child.send(question)
      const first = await Promise.race([answer, exited])
      if (!Array.isArray(first)) throw new Error(`the service ended with ${first}: ${output.slice(-2000)}`)
      return first[0]
    }
  }
  await start()
  return service
}

/** The status of an answer; 0 when none came. */
export async function statusOf (port: number, path: string, timeout = 5_000): Promise<number> {
  return await new Promise((resolve) => {
    const request = get({ host: '127.0.0.1', port, path, agent: false, timeout }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    }).on('timeout', () => { request.destroy() }).on('error', () => { resolve(0) })
  })
}
