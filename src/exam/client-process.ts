import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { END_MS } from './margins.ts'

/** The client did not answer as the protocol says: it ended, wrote something else, or took too long. */
export class ClientFailed extends Error {
  /** Whether it took too long, and still runs. */
  readonly isLate: boolean

  constructor (message: string, isLate = false) {
    super(message)
    this.isLate = isLate
  }
}

/** The client said that it does not know a task. */
export class UnknownTask extends Error {}

/** A task as the client reads it, without its id. */
export interface Task {
  do: string
  url: string
  apiKey: string
  timeoutMs: number
  args: Record<string, unknown>
}

/** What the client says of a task. */
export type TaskAnswer =
  | { ok: true, result: unknown }
  | { ok: false, error: { status?: number, code?: string, text: string } }

/** A process of the client under test, which reads tasks and writes answers, a line each. */
export interface ClientProcess {
  /** @throws {ClientFailed | UnknownTask} */
  ask: (task: Task, limitMs: number) => Promise<TaskAnswer>
  /** Ends standard input, and the process if that does not end it. */
  end: () => Promise<void>
}

interface Waiting { task: string, resolve: (answer: TaskAnswer) => void, reject: (error: Error) => void }

/** Characters of a line that an error shows, and characters of standard error from which it takes one. */
const SHOWN = 300
const KEPT = 8_192

/** Kills each client that runs. Clients are in process groups of their own, so no signal to this one reaches them. */
const kills = new Set<() => void>()

process.once('exit', () => { for (const kill of kills) kill() })

export function startClient (command: string): ClientProcess {
  const child = spawn(command, {
    // Its children end with it: a shell starts the program, which can start others.
    shell: true, detached: process.platform !== 'win32', stdio: 'pipe'
  })
  const waiting = new Map<number, Waiting>()
  const closed = once(child, 'close')
  let errors = ''
  let failure: Error | undefined
  let tasks = 0

  function fail (error: Error): void {
    failure ??= error
    for (const { reject } of waiting.values()) reject(failure)
    waiting.clear()
  }

  function kill (): void {
    if (child.pid === undefined) return
    try {
      if (process.platform === 'win32') child.kill()
      else process.kill(-child.pid, 'SIGKILL')
    } catch {
      // It has ended, with all its children.
    }
  }

  kills.add(kill)
  child.once('error', (error) => { fail(new ClientFailed(`The client cannot be started: ${error.message}`)) })
  child.stdin.on('error', () => { /* The end of the process says more. */ })
  child.stderr.setEncoding('utf8').on('data', (text: string) => { errors = (errors + text).slice(-KEPT) })
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (line.trim() === '') return
    const answer = readAnswer(line)
    const asked = waiting.get(answer?.id ?? 0)
    if (answer === undefined || asked === undefined) {
      return fail(new ClientFailed(`The client wrote a line that is no answer to a task: ${line.slice(0, SHOWN)}`))
    }
    waiting.delete(answer.id)
    if (!answer.ok && answer.error.code === 'unknown_task') {
      asked.reject(new UnknownTask(`The client does not know the task ${asked.task}.`))
    } else {
      asked.resolve(answer)
    }
  })
  closed.then(([code, signal]) => {
    const how = signal === null ? `with code ${code as number}` : `by ${signal as string}`
    const said = reasonIn(errors)
    const [task] = [...waiting.values()].map(({ task }) => ` before it answered the task ${task}`)
    fail(new ClientFailed(`The client ended ${how}${task ?? ''}${said === '' ? '.' : `: ${said}`}`))
  }, () => {})

  return {
    async ask (task, limitMs) {
      if (failure !== undefined) throw failure
      const id = ++tasks
      const late = setTimeout(() => {
        const text = `The client did not answer the task ${task.do} within ${limitMs / 1_000} s.`
        waiting.get(id)?.reject(new ClientFailed(text, true))
        waiting.delete(id)
      }, limitMs)
      try {
        return await new Promise<TaskAnswer>((resolve, reject) => {
          waiting.set(id, { task: task.do, resolve, reject })
          child.stdin.write(`${JSON.stringify({ id, ...task })}\n`)
        })
      } finally {
        clearTimeout(late)
      }
    },
    async end () {
      child.stdin.end()
      await Promise.race([closed, sleep(END_MS, undefined, { ref: false })])
      kill()
      // Children that left the group can keep standard output open.
      child.stdout.destroy()
      child.stderr.destroy()
      kills.delete(kill)
    }
  }
}

/** Returns the line of standard error that tells most: the last that names an error, or else the last. */
function reasonIn (errors: string): string {
  const lines = errors.split('\n').map((line) => line.trim()).filter((line) => line !== '')
  return (lines.findLast((line) => /error|exception|panic/i.test(line)) ?? lines.at(-1) ?? '').slice(0, SHOWN)
}

function readAnswer (line: string): (TaskAnswer & { id: number }) | undefined {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    return undefined
  }
  const { id, ok, error } = (value ?? {}) as { id?: unknown, ok?: unknown, error?: { text?: unknown } | null }
  const isAnswer = typeof id === 'number' && (ok === true || (ok === false && typeof error?.text === 'string'))
  return isAnswer ? value as TaskAnswer & { id: number } : undefined
}
