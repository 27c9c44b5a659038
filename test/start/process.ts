import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import { ROOT } from '../support/cli.ts'
import { freePort } from '../support/port.ts'

// The real process, as `npm start` runs it: what is compiled in dist, in a working directory of its own.

const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: Record<string, string> }

/** Far more than a start takes; a service that does not serve by then is stuck. */
const START_TIMEOUT_MS = 30_000

interface Running {
  /** Where it serves, once it does. */
  origin: string
  out: () => string
  err: () => string
  /** Its exit code, once it ended; the signal when one ended it. */
  ended: Promise<number | NodeJS.Signals>
  stop: (signal?: NodeJS.Signals) => Promise<number | NodeJS.Signals>
}

export interface Options {
  cwd?: string
  /** An account that is not root, for whom permissions count. */
  account?: { uid?: number, gid?: number }
}

/** Runs an npm script's command, without npm, or a command like it, in a folder and with settings of its own. */
export async function run (t: Test, script: string, settings: Record<string, string>, { cwd = folder(t), account = {} }: Options = {}): Promise<Running> {
  const [program, file = '', ...args] = (scripts[script] ?? script).split(' ')
  if (program !== 'node') throw new Error(`npm run ${script} does not run node`)
  const port = settings['PORT'] ?? String(await freePort())
  const child = spawn(process.execPath, [join(ROOT, file), ...args], {
    cwd,
    // The test runner writes something about each child, which may not be allowed to write where it would.
    env: { PATH: process.env['PATH'], _TAPJS_PROCESSINFO_CWD_: cwd, PORT: port, ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...account
  })
  let out = ''
  let err = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => { out += text })
  child.stderr.setEncoding('utf8').on('data', (text: string) => { err += text })
  const ended = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | NodeJS.Signals)
  const stop = async (signal: NodeJS.Signals = 'SIGTERM'): Promise<number | NodeJS.Signals> => {
    child.kill(signal)
    return await ended
  }
  t.teardown(async () => { await stop('SIGKILL') })
  return { origin: `http://127.0.0.1:${port}`, out: () => out, err: () => err, ended, stop }
}

/** As `npm start`, until it serves. */
export async function start (t: Test, settings: Record<string, string> = {}, options: Options = {}): Promise<Running> {
  return await served(await run(t, 'start', settings, options))
}

/** Until it serves. */
export async function served (running: Running): Promise<Running> {
  const deadline = Date.now() + START_TIMEOUT_MS
  let over = false
  running.ended.finally(() => { over = true })
  while (!await answers(`${running.origin}/readyz`)) {
    if (over || Date.now() > deadline) throw new Error(`the service did not start: ${running.err()}`)
    await sleep(20)
  }
  return running
}

export async function answers (address: string): Promise<boolean> {
  return await fetch(address).then(({ status }) => status === 200, () => false)
}

/** It ended with code 1, said one thing on standard error, and nothing of it is a stack or a password. */
export async function failed (t: Test, { ended, err, stop }: Running, says: RegExp, lines = 1): Promise<void> {
  const late = setTimeout(stop, START_TIMEOUT_MS)
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
