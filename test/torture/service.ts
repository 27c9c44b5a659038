import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { get } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setTimeout as sleep } from 'node:timers/promises'
import { build, nodeOptionsOf } from '../support/cli.ts'
import { freePort } from '../support/port.ts'

/** The project whose service runs. `TORTURE_ROOT` is a built copy of another version, to see the scenarios fail. */
const ROOT = process.env['TORTURE_ROOT'] ?? fileURLToPath(new URL('../..', import.meta.url))
const PRELOAD = fileURLToPath(new URL('preload.mjs', import.meta.url))

/** Far longer than any start: a service that is not ready by then is stuck. */
const START_TIMEOUT_MS = 120_000

/** The real service in a process of its own. */
export interface Service {
  /** The current port, which changes at each start. */
  port: number
  pid: number
  /** Returns the worker processes of a service with the setting `PROCESSES`, on Linux. */
  workers: () => number[]
  /** Returns everything that it wrote to standard output and standard error. */
  output: () => string
  /** Starts it again on the same database and waits until it is ready. */
  start: () => Promise<void>
  /** Starts it without waiting. */
  launch: () => Promise<void>
  signal: (signal: NodeJS.Signals) => void
  /** Returns its exit code or signal and its last output, or `undefined` while it runs. */
  exitReason: () => string | undefined
  /** Waits for its end. @returns the exit code, or the signal that ended it */
  ended: () => Promise<number | NodeJS.Signals>
  kill: () => Promise<void>
  /** Sends a question to `preload.mjs` in the process. */
  ask: (question: string) => Promise<Record<string, number>>
}

export interface ServiceOptions {
  /** Loads `preload.mjs`, which answers questions. */
  preload?: boolean
}

let built = false

/** Compiles src if it changed since the last build. */
function buildOnce (): void {
  if (built || process.env['TORTURE_ROOT'] !== undefined) return
  build()
  built = true
}

export async function startService (
  settings: Record<string, string>, { preload = false }: ServiceOptions = {}
): Promise<Service> {
  buildOnce()
  let child: ChildProcess
  let exited: Promise<number | NodeJS.Signals>
  let output = ''

  async function launch (): Promise<void> {
    service.port = await freePort()
    const nodeOptions = nodeOptionsOf(join(ROOT, 'dist/cli.js'))
    if (preload) nodeOptions.push('--expose-gc', '--import', PRELOAD)
    child = spawn(process.execPath, [...nodeOptions, 'dist/cli.js', 'start'], {
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
      const ended = service.exitReason()
      if (ended !== undefined) throw new Error(`the service ended while starting with ${ended}`)
      if (Date.now() > deadline) throw new Error(`the service does not become ready: ${output.slice(-2000)}`)
      await sleep(15)
    }
  }

  const service: Service = {
    port: 0,
    pid: 0,
    workers () {
      if (settings['PROCESSES'] === undefined || service.exitReason() !== undefined) return []
      const children = readFileSync(`/proc/${service.pid}/task/${service.pid}/children`, 'utf8').trim()
      return children === '' ? [] : children.split(' ').map(Number)
    },
    output: () => output,
    start,
    launch,
    signal (signal) { child.kill(signal) },
    exitReason () {
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

/** Requests a path. @returns the status of the answer, or 0 without one */
export async function statusOf (port: number, path: string, timeout = 5_000): Promise<number> {
  return await new Promise((resolve) => {
    const request = get({ host: '127.0.0.1', port, path, agent: false, timeout }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    }).on('timeout', () => { request.destroy() }).on('error', () => { resolve(0) })
  })
}
