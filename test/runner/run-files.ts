import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { ROOT } from './jobs.ts'
import { createFileResults, type FileResults } from './results.ts'

/** tap ends a process that runs longer, for each of its files, and lists its open handles. */
const FILE_TIMEOUT_S = 1_800

/** The runner kills a file that tap did not end this long after its time-out. */
const KILL_DELAY_MS = 30_000

/** A process that a test left behind keeps the output open. The runner reads it no longer than this. */
const OUTPUT_TIMEOUT_MS = 10_000

interface Ended { code: number | null, signal: NodeJS.Signals | null, problem?: string | undefined }

/**
 * Runs some test files in a new process. tap's own runner would do the same, but it loads its hooks for mocks
 * and coverage into each test process and, through NODE_OPTIONS, into each process that a test starts. A file that
 * starts services took 25.1 s with the hooks and 11.8 s without.
 *
 * @param args the arguments of `node` that run the files
 */
export async function runTestFiles (
  files: string[], args: string[], settings: NodeJS.ProcessEnv, stop: AbortSignal
): Promise<FileResults> {
  const timeoutS = FILE_TIMEOUT_S * files.length
  const child = spawn(process.execPath, args, {
    cwd: ROOT,
    env: { ...process.env, ...settings, TAP: '1', TAP_TIMEOUT: String(timeoutS), NO_COLOR: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
    // The processes that a test starts belong to the same group, so that one signal ends all of them.
    detached: process.platform !== 'win32'
  })
  const results = createFileResults(files)
  const errors = collectText(child)
  child.stdout.pipe(results.parser)
  const parsed = once(results.parser, 'complete')
  const { problem, code, signal } = await endOf(child, stop, timeoutS)
  await Promise.race([parsed, sleep(OUTPUT_TIMEOUT_MS, undefined, { ref: false })])

  if (problem !== undefined) {
    results.addFailure(problem)
  } else if (results.counts.failed === 0) {
    const flaw = code === 0 ? results.findProblem() : `ended with ${signal ?? `code ${code}`}`
    if (flaw !== undefined) results.addFailure(flaw)
  }
  if (errors() !== '') results.report.push(errors().trimEnd())
  return results
}

/** Waits for the end of a process and of its output. Ends the process when it takes too long or the run stops. */
async function endOf (child: ChildProcess, stop: AbortSignal, timeoutS: number): Promise<Ended> {
  const closed = once(child, 'close')
  closed.catch(() => {})
  const kill = (): void => { killGroup(child) }
  stop.addEventListener('abort', kill)
  if (stop.aborted) kill()
  let problem: string | undefined
  const timer = setTimeout(() => {
    problem = `did not end within ${timeoutS} s`
    kill()
  }, timeoutS * 1000 + KILL_DELAY_MS)
  try {
    const [code, signal] = await once(child, 'exit') as [number | null, NodeJS.Signals | null]
    const wait = sleep(OUTPUT_TIMEOUT_MS, 'open', { ref: false })
    if (await Promise.race([closed, wait]) === 'open') {
      problem ??= 'left a process behind that keeps its output open'
      child.stdout?.destroy()
      child.stderr?.destroy()
    }
    return { code, signal, problem }
  } catch (error) {
    return { code: null, signal: null, problem: `cannot be started: ${(error as Error).message}` }
  } finally {
    clearTimeout(timer)
    stop.removeEventListener('abort', kill)
  }
}

function collectText (child: ChildProcess): () => string {
  let text = ''
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => { text += chunk })
  return () => text
}

function killGroup ({ pid, exitCode, signalCode }: ChildProcess): void {
  if (pid === undefined || exitCode !== null || signalCode !== null) return
  process.kill(process.platform === 'win32' ? pid : -pid, 'SIGKILL')
}
