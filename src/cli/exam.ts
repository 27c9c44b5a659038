import { open, type FileHandle } from 'node:fs/promises'
import type { Command } from 'commander'
import { ValidationFailed } from '../errors.ts'
import type { AnyPaper } from '../exam/paper.ts'
import { OperationalError } from '../operational-error.ts'
import { JSON_OPTION, printRecords, type JsonOption } from './records.ts'

interface ExamOptions extends JsonOption { client?: string, list?: boolean, only?: string, junit?: string }

export function addExam (program: Command): void {
  program.command('exam')
    .description('examine a client: what it does when responses are lost, late, broken or limited')
    .option('--client <command>', 'starts the client, which reads tasks and writes answers, a line of JSON each')
    .option('--only <papers>', 'only these papers, such as retry,pages')
    .option('--list', 'list the papers, and examine nothing')
    .option(...JSON_OPTION)
    .option('--junit <file>', 'also write the results as JUnit XML')
    .action(async ({ client, list = false, only, json = false, junit }: ExamOptions) => {
      const { PAPERS } = await import('../exam/papers.ts')
      const papers = only === undefined ? PAPERS : choose(PAPERS, only)
      if (list) {
        await printRecords(papers.map(({ name, goodClient }) => ({ name, goodClient })), json,
          ({ name, goodClient }) => `${name.padEnd(15)}A good client ${goodClient}.`)
        return
      }
      if (client === undefined || client.trim() === '') {
        throw new ValidationFailed('Use --client with the command that starts your client, or --list')
      }
      const { holdExam } = await import('../exam/exam.ts')
      const { hasPassed, junitOf, linesOf, reportOf, summaryOf } = await import('../exam/report.ts')
      const file = junit === undefined ? undefined : await create(junit)
      const stop = new AbortController()
      const stopped = new OperationalError('The exam was stopped.')
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => { stop.abort(stopped) })
      const results = await holdExam(client, {
        papers,
        signal: stop.signal,
        onResult (result) { if (!json) for (const line of linesOf(result)) console.log(line) }
      })
      console.log(json ? JSON.stringify(reportOf(client, results), null, 2) : summaryOf(results))
      await file?.writeFile(junitOf(results))
      await file?.close()
      if (!hasPassed(results)) process.exitCode = 1
    })
}

/** Creates a file before the exam: it takes minutes, and its results would be lost. */
async function create (path: string): Promise<FileHandle> {
  try {
    return await open(path, 'w')
  } catch (error) {
    throw new OperationalError(`Cannot write ${path}: ${(error as Error).message}`)
  }
}

/** @throws {ValidationFailed} that names a paper which does not exist */
function choose (papers: AnyPaper[], only: string): AnyPaper[] {
  const names = only.split(',').map((name) => name.trim())
  const unknown = names.find((name) => !papers.some((paper) => paper.name === name))
  if (unknown !== undefined) {
    const all = papers.map(({ name }) => name).join(', ')
    throw new ValidationFailed(`There is no paper ${unknown}. The papers are: ${all}`)
  }
  return papers.filter(({ name }) => names.includes(name))
}
