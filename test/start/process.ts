import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import { ROOT } from '../support/cli.ts'
import { database } from '../support/database.ts'
import { freePort } from '../support/port.ts'

// Runs the compiled service as `npm start` does, in a separate working directory.

const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: Record<string, string> }

/** The reason to skip a test that no statement decides, or `false`. */
export const ON_SQLITE = database !== 'sqlite' && 'as on SQLite'

/** Matches what an npm script runs before its program. The tests build once instead. */
const LAUNCHER = /^node scripts\/prepare\.mjs && exec /

/** Maximum duration of a start, far longer than usual: a service that is not ready by then hangs. */
const START_TIMEOUT_MS = 120_000

export interface Running {
  /** The URL of the service. */
  origin: string
  pid: number
  out: () => string
  err: () => string
  /** The exit code, or the signal that ended the process. */
  ended: Promise<number | NodeJS.Signals>
  stop: (signal?: NodeJS.Signals) => Promise<number | NodeJS.Signals>
}

export interface Options {
  cwd?: string
  /** The program of another version of Node. */
  node?: string
  /** A user other than root, to whom file permissions apply. */
  account?: { uid?: number, gid?: number }
}

/** Runs the command of an npm script, or another command, without npm, in a separate folder and environment. */
export async function run (
  t: Test,
  script: string,
  settings: Record<string, string>,
  { cwd = folder(t), node = process.execPath, account = {} }: Options = {}
): Promise<Running> {
  const [file = '', ...args] = commandOf(script).replace(/^node /, '').split(' ')
  const port = settings['PORT'] ?? String(await freePort())
  const child = spawn(node, [join(ROOT, file), ...args], {
    cwd,
    env: { PATH: process.env['PATH'], PORT: port, ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...account
  })
  let out = ''
  let err = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text
  })
  const ended = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | NodeJS.Signals)
  const stop = async (signal: NodeJS.Signals = 'SIGTERM'): Promise<number | NodeJS.Signals> => {
    child.kill(signal)
    return await ended
  }
  t.teardown(async () => {
    await stop('SIGKILL')
  })
  return { origin: `http://127.0.0.1:${port}`, pid: child.pid!, out: () => out, err: () => err, ended, stop }
}

/** Returns the command of an npm script without its launcher, or that of a `petstore` command. */
function commandOf (script: string): string {
  if (script.startsWith('node ')) return script
  return scripts[script]?.replace(LAUNCHER, '') ?? `dist/cli.js ${script}`
}

/** Runs `npm start` and waits until the service is ready. */
export async function start (t: Test, settings: Record<string, string> = {}, options: Options = {}): Promise<Running> {
  return await served(await run(t, 'start', settings, options))
}

/** Waits until the service is ready. */
async function served (running: Running): Promise<Running> {
  const deadline = Date.now() + START_TIMEOUT_MS
  let over = false
  void running.ended.finally(() => { over = true })
  while (!await answers(`${running.origin}/readyz`)) {
    if (over || Date.now() > deadline) throw new Error(`the service did not start: ${running.err()}`)
    await sleep(20)
  }
  return running
}

export async function answers (address: string): Promise<boolean> {
  return await fetch(address).then(({ status }) => status === 200, () => false)
}

/** Asserts that the process exits with code 1 and prints one message, without a stack or a password. */
export async function failed (t: Test, { ended, err, stop }: Running, says: RegExp, lines = 1): Promise<void> {
  const late = setTimeout(() => { void stop() }, START_TIMEOUT_MS)
  t.equal(await ended, 1)
  clearTimeout(late)
  t.match(err(), says)
  t.equal(err().trim().split('\n').length, lines, err())
  t.notMatch(err(), /\n +at |node:internal|secret/)
}

export function folder (t: Test, parent = tmpdir()): string {
  const path = mkdtempSync(join(parent, 'petstore-start-'))
  t.teardown(() => {
    if (existsSync(path)) chmodSync(path, 0o755)
    rmSync(path, { recursive: true, force: true })
  })
  return path
}
