// Only on SQLite: ends npm start in several ways.

import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { closeSync, existsSync, openSync, readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { build, ROOT } from '../support/cli.ts'
import { freePort } from '../support/port.ts'
import { answers, folder } from './process.ts'

t.before(build)

/** Far longer than a start or a stop takes: the service hangs if it needs longer. */
const PATIENCE_MS = 120_000

const WINDOWS = process.platform === 'win32' && 'uses signals of POSIX'

interface Started {
  /** The process that the test started. */
  child: ChildProcess
  database: string
  port: number
  log: () => string
}

/** Starts a command that runs `npm start`, and waits until the service is ready. */
async function startNpm (t: Test, command: string[], settings: Record<string, string> = {}): Promise<Started> {
  const cwd = folder(t)
  const port = await freePort()
  const database = join(cwd, 'store.db')
  const output = openSync(join(cwd, 'log'), 'a')
  const env = {
    PATH: process.env['PATH'], HOME: cwd, TERM: 'xterm', PORT: String(port), DATABASE_URL: `file:${database}`, ...settings
  }
  const [program, ...args] = command
  // The test holds the other end of its input, as supervisors do.
  const child = spawn(program!, args, { cwd: ROOT, env, stdio: ['pipe', output, output], detached: true })
  closeSync(output)
  t.teardown(() => { for (const pid of [-child.pid!, ...processesOf(database).map(Number)]) kill(pid, 'SIGKILL') })
  const log = (): string => readFileSync(join(cwd, 'log'), 'utf8')
  await until(() => log().includes('Server listening'), 'the service listens')
  await until(async () => await answers(`http://127.0.0.1:${port}/readyz`), `the service is ready: ${log()}`)
  return { child, database, port, log }
}

/** Asserts that the service closed its database and that another service can listen on its port. */
async function endsGracefully (t: Test, { database, port, log }: Started): Promise<void> {
  await until(async () => await isFree(port), `the port is free: ${log()}`)
  await until(() => !existsSync(`${database}-wal`), 'the database is closed')
  await until(() => processesOf(database).length === 0, `no process is left: ${processesOf(database).join()}`)
  t.pass('the database is closed, the port is free and no process is left')
}

/** Lists the processes that use a database, on Linux. */
function processesOf (database: string): string[] {
  if (!existsSync('/proc/self/environ')) return []
  return readdirSync('/proc').filter((pid) => /^\d+$/.test(pid)).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(database)
    } catch {
      return false
    }
  })
}

async function until (holds: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS
  while (!await holds()) {
    if (Date.now() > deadline) throw new Error(`not so after ${PATIENCE_MS} ms: ${what}`)
    await sleep(50)
  }
}

async function isFree (port: number): Promise<boolean> {
  const server = createServer()
  return await new Promise((resolve) => {
    server.once('error', () => { resolve(false) })
    server.listen(port, '127.0.0.1', () => server.close(() => { resolve(true) }))
  })
}

function kill (pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It has ended.
  }
}

t.test('the service ends with the npm that started it', { skip: WINDOWS }, async (t) => {
  await t.test('SIGTERM to npm alone', async (t) => {
    const started = await startNpm(t, ['npm', 'start'])
    kill(started.child.pid!, 'SIGTERM')
    await endsGracefully(t, started)
    t.match(started.log(), '"msg":"stopped"')
  })

  for (const shell of ['sh', 'bash']) {
    const missing = spawnSync(shell, ['-c', 'true']).status !== 0 && `there is no ${shell}`
    await t.test(`Ctrl-C, where npm uses ${shell}`, { skip: missing }, async (t) => {
      const started = await startNpm(t, ['npm', 'start'], { npm_config_script_shell: shell })
      // The terminal sends it to each process of its foreground group.
      kill(-started.child.pid!, 'SIGINT')
      await endsGracefully(t, started)
      t.match(started.log(), '"msg":"stopped"')
    })
  }

  const noTerminal = spawnSync('script', ['--version']).status !== 0 && 'there is no program `script`'
  await t.test('a closed terminal', { skip: noTerminal }, async (t) => {
    const started = await startNpm(t, ['script', '-qec', 'npm start', '/dev/null'])
    kill(started.child.pid!, 'SIGKILL')
    await endsGracefully(t, started)
  })
})
