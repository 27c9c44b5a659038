import type { RecordedRequest } from '../client/client.ts'
import { printable } from '../monitoring/printable.ts'
import type { Result } from './exam.ts'
import type { Finding } from './paper.ts'
import { fieldOf } from './recorded-requests.ts'

/** Requests of a finding that a report shows: the first ones. */
const SHOWN_REQUESTS = 12

/** Fields of a request that tell what a client does. */
const TELLING_FIELDS = ['idempotency-key', 'if-match', 'if-none-match', 'last-event-id']

/** A request as a report shows it. */
interface ShownRequest {
  id: number
  at: string
  durationMs: number
  method: string
  path: string
  status?: number
  outcome: string
  fields: Record<string, string>
}

/** Returns the lines about a paper. */
export function linesOf ({ paper, verdict, findings }: Result): string[] {
  const heading = `${paper.padEnd(15)}${verdict}`
  return [heading, ...findings.flatMap(linesOfFinding).map((line) => `    ${line}`)].map(printable)
}

function linesOfFinding ({ text, requests = [] }: Finding): string[] {
  const left = requests.length - SHOWN_REQUESTS
  return [
    text,
    ...requests.slice(0, SHOWN_REQUESTS).map((request) => `    ${lineOf(shownRequest(request))}`),
    ...left > 0 ? [`    and ${left} more`] : []
  ]
}

function lineOf ({ id, at, durationMs, method, path, status, outcome, fields }: ShownRequest): string {
  const answer = outcome === 'answered' ? `${status}` : [status, outcome].filter((part) => part !== undefined).join(' ')
  const told = Object.entries(fields).map(([name, value]) => `, ${name}: ${value}`).join('')
  return `${id}  ${at.slice('2026-11-27T'.length, -1)}  ${method} ${path}  ${answer}, ${durationMs} ms${told}`
}

export function summaryOf (results: Result[]): string {
  const passed = results.filter(({ verdict }) => verdict === 'passed').length
  return `${passed} of ${results.length} papers passed.`
}

/** Returns the results for programs. */
export function reportOf (client: string, results: Result[]): object {
  return {
    client,
    passed: hasPassed(results),
    papers: results.map(({ findings, ...result }) => ({
      ...result,
      findings: findings.map(({ text, requests = [] }) => ({ text, requests: requests.map(shownRequest) }))
    }))
  }
}

export function hasPassed (results: Result[]): boolean {
  return results.every(({ verdict }) => verdict === 'passed')
}

function shownRequest (request: RecordedRequest): ShownRequest {
  const { id, at, durationMs, method, path, status, outcome } = request
  const told = TELLING_FIELDS.flatMap((name) => {
    const value = fieldOf(request, name)
    return value === undefined ? [] : [[name, value]]
  })
  const fields = Object.fromEntries(told) as Record<string, string>
  return { id, at, durationMs, method, path, ...status === undefined ? {} : { status }, outcome, fields }
}

/** Returns the results as JUnit XML, which servers of continuous integration read: a test case for each paper. */
export function junitOf (results: Result[]): string {
  const failed = results.filter(({ verdict }) => verdict !== 'passed')
  const seconds = Math.max(0, ...results.map(({ durationMs }) => durationMs)) / 1_000
  const cases = results.map((result) => {
    const { paper, verdict, findings, durationMs } = result
    const head = `    <testcase classname="petstore exam" name="${escaped(paper)}" time="${durationMs / 1_000}"`
    if (verdict === 'passed') return `${head}/>`
    const message = findings.map(({ text }) => text).join(' ')
    return `${head}>
      <failure type="${verdict}" message="${escaped(message)}">${escaped(linesOf(result).slice(1).join('\n'))}</failure>
    </testcase>`
  })
  return `<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="petstore exam" tests="${results.length}" failures="${failed.length}" time="${seconds}">
${cases.join('\n')}
  </testsuite>
</testsuites>
`
}

/** Escapes a text for XML 1.0, which cannot have most control characters. */
function escaped (text: string): string {
  return text.replaceAll(/[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '\ufffd')
    .replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
