import { once } from 'node:events'
import { createStore } from '../create-store.ts'
import { ClientFailed, UnknownTask } from './client-process.ts'
import { Undecided, type AnyPaper, type Finding } from './paper.ts'
import { openRoom } from './room.ts'

/** `not taken`: the client does not know a task of the paper, which counts as failed. */
export type Verdict = 'passed' | 'failed' | 'not taken'

export interface Result {
  paper: string
  goodClient: string
  verdict: Verdict
  findings: Finding[]
  durationMs: number
}

/** How often a paper is held that a slow machine leaves undecided. */
const ATTEMPTS = 4

interface ExamOptions {
  papers: AnyPaper[]
  /** Is called with each result, in the order of the papers. */
  onResult?: (result: Result) => void
  /** Ends the exam: it then throws the reason. */
  signal?: AbortSignal
}

/**
 * Examines a client: starts a service, and holds all papers at the same time.
 *
 * @param command starts the client, in a shell
 */
export async function holdExam (
  command: string, { papers, onResult = () => {}, signal = new AbortController().signal }: ExamOptions
): Promise<Result[]> {
  const service = await createStore({ name: 'Exam', settings: { LAB: true } })
  try {
    // A signal that was aborted meanwhile emits nothing more.
    signal.throwIfAborted()
    const ended = once(signal, 'abort').then(() => { throw signal.reason })
    const running = papers.map(async (paper) => await holdPaper(paper, service.url, command))
    // One that fails later must not end the process while the exam waits for another.
    for (const result of [...running, ended]) result.catch(() => {})
    const results: Result[] = []
    for (const result of running) {
      results.push(await Promise.race([result, ended]))
      onResult(results.at(-1)!)
    }
    return results
  } finally {
    await service.close()
  }
}

async function holdPaper (paper: AnyPaper, url: string, command: string): Promise<Result> {
  const { name, goodClient } = paper
  const began = performance.now()
  const resultOf = (verdict: Verdict, findings: Finding[]): Result =>
    ({ paper: name, goodClient, verdict, findings, durationMs: Math.round(performance.now() - began) })
  for (let attempt = 1; ; attempt++) {
    try {
      const findings = await judgeClient(paper, url, command, attempt)
      return resultOf(findings.length === 0 ? 'passed' : 'failed', findings)
    } catch (error) {
      if (error instanceof Undecided) {
        if (attempt < ATTEMPTS) continue
        const text = `The paper could not be held in ${attempt} attempts: the machine, or the client, is too slow.`
        return resultOf('failed', [{ text }])
      }
      if (error instanceof UnknownTask) return resultOf('not taken', [{ text: error.message }])
      if (error instanceof ClientFailed) return resultOf('failed', [{ text: error.message }])
      throw error
    }
  }
}

async function judgeClient (paper: AnyPaper, url: string, command: string, attempt: number): Promise<Finding[]> {
  const room = await openRoom(url, command, attempt)
  try {
    const judge = await paper.sit(room)
    await room.dismiss()
    return judge(await room.readJournal())
  } finally {
    await room.dismiss()
  }
}
