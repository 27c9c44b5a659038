import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { freePort } from './port.ts'

// Runs the command line as it is installed: the compiled files in dist, in a process of its own.

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))
export const CLI = join(ROOT, 'dist/cli.js')

/** Returns the options of Node that a built version is run with, where it is not run by its name. */
export function nodeOptionsOf (cli = CLI): string[] {
  const [, options = ''] = /^#!.* node (.*)$/m.exec(readFileSync(cli, 'utf8').split('\n', 1)[0]!) ?? []
  return options.split(' ').filter((option) => option !== '')
}

/** Far longer than any command: one that has not ended by then is stuck. */
const TIMEOUT_MS = 300_000

export function build (): void {
  // `npm test` has built it.
  if (process.env['TEST_ERRORS'] !== undefined) return
  const { status } = spawnSync(process.execPath, ['scripts/prepare.mjs'], {
    cwd: ROOT,
    stdio: ['ignore', 'ignore', 'inherit']
  })
  if (status !== 0) throw new Error('the command line cannot be built')
}

export interface Ended { code: number | NodeJS.Signals, out: string, err: string }

export interface Running {
  out: () => string
  err: () => string
  ended: Promise<Ended>
  stop: (signal?: NodeJS.Signals) => Promise<Ended>
}

export interface Options { cwd?: string, env?: Record<string, string | undefined> }

/** Starts a program with only the given settings. It is killed when the test ends. */
export function launch (
  t: Test, program: string, args: string[], { cwd = folder(t), env = {} }: Options = {}
): Running {
  const child = spawn(program, args, {
    cwd,
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], TMPDIR: process.env['TMPDIR'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: process.platform !== 'win32'
  })
  let out = ''
  let err = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => { out += text })
  child.stderr.setEncoding('utf8').on('data', (text: string) => { err += text })
  const ended = once(child, 'close').then(([code, signal]) =>
    ({ code: (code ?? signal) as number | NodeJS.Signals, out, err }))
  const stop = async (signal: NodeJS.Signals = 'SIGTERM'): Promise<Ended> => {
    // The signal goes to its children, too: npm starts the service, and the CLI starts Studio.
    if (child.exitCode === null && child.signalCode === null) {
      process.kill(process.platform === 'win32' ? child.pid! : -child.pid!, signal)
    }
    return await ended
  }
  t.teardown(async () => { await stop('SIGKILL') })
  return { out: () => out, err: () => err, ended, stop }
}

/** Runs a command of `petstore` to its end. */
export async function petstore (t: Test, args: string[], options: Options = {}): Promise<Ended> {
  const running = launch(t, process.execPath, [CLI, ...args], options)
  const late = setTimeout(() => { running.stop('SIGKILL').catch(() => {}) }, TIMEOUT_MS)
  return await running.ended.finally(() => { clearTimeout(late) })
}

/** Waits until a condition holds. Fails when the process ends first. */
export async function until (
  running: Running, done: () => boolean | Promise<boolean>, ms = TIMEOUT_MS
): Promise<void> {
  const deadline = Date.now() + ms
  let over = false
  running.ended.finally(() => { over = true }).catch(() => {})
  while (!await done()) {
    if (over || Date.now() > deadline) {
      const reason = over ? 'the process has ended' : `the condition did not hold within ${ms} ms`
      throw new Error(`${reason}: ${running.out()}${running.err()}`)
    }
    await sleep(20)
  }
}

/** Starts `petstore start` and waits until it is ready. */
export async function startService (
  t: Test, env: Record<string, string>, options: Options = {}
): Promise<Running & { origin: string }> {
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  // A busy machine can need longer than the default to connect to the database.
  const patient = { REQUEST_TIMEOUT_MS: '60000' }
  const settings = { LOG_LEVEL: 'warn', DELIVERY: 'false', ...patient, ...env, PORT: String(port) }
  const running = launch(t, process.execPath, [CLI, 'start'], { ...options, env: settings })
  await until(running, async () => await answers(`${origin}/readyz`))
  return { ...running, origin }
}

export async function answers (address: string): Promise<boolean> {
  return await fetch(address).then(({ ok }) => ok, () => false)
}

export function folder (t: Test): string {
  const path = mkdtempSync(join(tmpdir(), 'petstore-cli-'))
  t.teardown(() => { rmSync(path, { recursive: true, force: true, maxRetries: 3 }) })
  return path
}

/** Returns npm's settings for the registry and its cache, without those of the npm script that runs the tests. */
export function npmSettings (): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) =>
    /^npm_config_(registry|userconfig|cache|nodedir)$/i.test(name)))
}
