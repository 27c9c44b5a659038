import { Parser, type Result, type TapError } from 'tap-parser'
import { stringify } from 'yaml'

/** Of one failure; a test that hangs lists every open handle. */
const DETAIL_LINES = 60

/** Tests are the innermost subtests, whose names say what the service does; a file without any is one test. */
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

/**
 * Counts the tests of one TAP stream and prints a line per file, each failure and each skipped test.
 * Stricter than TAP: a test without an assertion has tested nothing and is a failure.
 */
export class Results extends Parser {
  readonly total = noCounts()

  constructor () {
    super()
    let file = noCounts()
    let report: string[] = []
    this.on('child', (child: Parser) => {
      file = noCounts()
      report = []
      count(child, [child.name], file, report)
    })
    this.on('assert', (result: Result) => {
      if (!result.ok && file.failed === 0) fail(file, report, [result.name], result)
      const { signal } = (result.diag ?? {}) as { signal?: string | null }
      if (signal != null) report.push(`  ended by ${signal}`)
      console.log(`${file.failed > 0 ? '✖' : '✔'} ${result.name} ${summary(file)}`)
      for (const line of report) console.log(line)
      add(this.total, file)
      file = noCounts()
      report = []
    })
    this.on('bailout', (reason: string) => { fail(this.total, report, ['bailed out'], { tapError: reason }) })
    this.on('extra', (text: string) => { if (text.trim() !== '') console.log(text.trimEnd()) })
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
    // Beside subtests, an assertion belongs to none of them.
    if (subtests > 0 && !result.ok) fail(counts, report, [...path, result.name], result)
  })
  parser.on('complete', (results: Parser['results']) => {
    if (subtests > 0 || results === null) return
    const [problem] = results.failures
    if (problem !== undefined) fail(counts, report, path, problem)
    else if (assertions > 0) counts.passed++
    else if (results.skip === 0 && results.todo === 0) fail(counts, report, path, { tapError: 'ran without an assertion' })
  })
}

function fail (counts: Counts, report: string[], path: string[], problem: TapError): void {
  counts.failed++
  counts.failures.push(path.join(' › '))
  report.push(`  ✖ ${path.slice(1).join(' › ') || path.join()}`)
  const text = 'diag' in problem ? `${String(problem['name'])}\n${details(problem['diag'])}` : String(problem.tapError)
  report.push(...text.trimEnd().split('\n').slice(0, DETAIL_LINES).map((line) => `      ${line}`))
}

/** What a person needs of tap's diagnostics: where, the difference, and whatever else it holds. */
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
