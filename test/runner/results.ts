import { Parser, type Result, type TapError } from 'tap-parser'
import { stringify } from 'yaml'

/** Limits the details of one failure. A test that hangs lists each open handle. */
const MAX_DETAIL_LINES = 60

/** Counts tests. A test is an innermost subtest. A file without subtests is one test. */
export interface Counts {
  passed: number
  failed: number
  skipped: number
  assertions: number
  failures: string[]
}

export function noCounts (): Counts {
  return { passed: 0, failed: 0, skipped: 0, assertions: 0, failures: [] }
}

/** The results of the test files that one process ran, parsed from its TAP output. */
export interface FileResults {
  parser: Parser
  counts: Counts
  /** A line for each failed and each skipped test, with details. */
  report: string[]
  /** Records a failure of the file that ran last as a whole. */
  addFailure: (problem: string) => void
  /** Returns why the TAP output as a whole is incomplete or not ok, if it is. */
  findProblem: () => string | undefined
}

/** Matches the comment that test/runner/run-several.ts prints before the tests of a file. */
const FILE_COMMENT = /^# file (.+)$/

/**
 * Counts the tests of some files and reports each failed and each skipped one.
 * It is stricter than TAP: a test without an assertion tests nothing and is a failure.
 */
export function createFileResults (files: string[]): FileResults {
  const parser = new Parser()
  const counts = noCounts()
  const report: string[] = []
  const path = [files[0]!]
  count(parser, path, counts, report)
  const addFailure = (problem: string): void => { fail(counts, report, path, { tapError: problem }) }
  const untested = new Set(files)
  parser.on('comment', (text: string) => { path[0] = FILE_COMMENT.exec(text.trim())?.[1] ?? path[0]! })
  parser.on('child', () => { untested.delete(path[0]!) })
  // A skipped test is an assertion without a subtest.
  parser.on('assert', () => { untested.delete(path[0]!) })
  parser.on('complete', () => {
    if (files.length > 1) for (const file of untested) fail(counts, report, [file], { tapError: 'has no test' })
  })
  parser.on('bailout', (reason: string) => { addFailure(`bailed out: ${reason}`) })
  parser.on('extra', (text: string) => { if (text.trim() !== '') report.push(text.trimEnd()) })
  return {
    parser,
    counts,
    report,
    addFailure,
    findProblem () {
      if (parser.results === null) return 'printed no complete TAP'
      if (parser.results.ok) return undefined
      const [first] = parser.results.failures
      return first !== undefined && 'tapError' in first ? String(first.tapError) : 'is not ok'
    }
  }
}

export function add (sum: Counts, more: Counts): void {
  sum.passed += more.passed
  sum.failed += more.failed
  sum.skipped += more.skipped
  sum.assertions += more.assertions
  sum.failures.push(...more.failures)
}

export function summary ({ passed, failed, skipped, assertions }: Counts): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''} (${assertions} assertions)`
}

function count (parser: Parser, path: string[], counts: Counts, report: string[]): void {
  let subtests = 0
  let assertions = 0
  parser.on('child', (child: Parser) => {
    subtests++
    count(child, [...path, child.name], counts, report)
  })
  parser.on('assert', (result: Result) => {
    if (result.closingTestPoint) return
    if (result.skip !== false || result.todo !== false) {
      counts.skipped++
      report.push(`  – ${[...path.slice(1), result.name].join(' › ')}: ${String(result.skip || result.todo)}`)
      return
    }
    assertions++
    counts.assertions++
    // An assertion beside subtests belongs to none of them.
    if (subtests > 0 && !result.ok) fail(counts, report, [...path, result.name], result)
  })
  parser.on('complete', (results: Parser['results']) => {
    if (subtests > 0 || results === null) return
    const [problem] = results.failures
    if (problem !== undefined) fail(counts, report, path, problem)
    else if (assertions > 0) counts.passed++
    else if (results.skip === 0 && results.todo === 0) {
      fail(counts, report, path, { tapError: 'ran without an assertion' })
    }
  })
}

function fail (counts: Counts, report: string[], path: string[], problem: TapError): void {
  counts.failed++
  counts.failures.push(path.join(' › '))
  report.push(`  ✖ ${path.slice(1).join(' › ') || path.join()}`)
  const text = 'diag' in problem ? `${String(problem['name'])}\n${details(problem['diag'])}` : String(problem.tapError)
  report.push(...text.trimEnd().split('\n').slice(0, MAX_DETAIL_LINES).map((line) => `      ${line}`))
}

/** Formats tap's diagnostics: the place, the difference and the remaining members. */
function details (diagnostics: Record<string, unknown> | null): string {
  const { at, diff, source, args, stdio, cwd, command, jobId, externalID, stack, ...rest } = diagnostics ?? {}
  const place = at as { fileName?: string, lineNumber?: number } | undefined
  return [
    place?.fileName === undefined ? '' : `at ${place.fileName}:${place.lineNumber}`,
    typeof diff === 'string' ? diff : '',
    typeof stack === 'string' ? stack : '',
    Object.keys(rest).length > 0 ? stringify(rest) : ''
  ].filter((part) => part !== '').join('\n')
}
