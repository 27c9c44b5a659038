import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ErrorRecord, OperationError } from '../support/met-errors.ts'

/** Why the tests meet some errors at a few operations only. */
const REASONS: Record<string, string> = {
  idempotency_key_in_use: 'takes two transactions at a time, which PostgreSQL has',
  internal_error: 'takes a defect, such as a missing table',
  database_unavailable: 'takes a lock on tables, or a server that stalls',
  overloaded: 'takes a full queue'
}

/** Where test processes write which errors they met. */
export interface ErrorRecords {
  /** Environment variables that name the place to a test file. */
  settings: NodeJS.ProcessEnv
  /** Returns the report of all records, and what fails the suite. */
  read: () => { report: string[], failures: string[] }
}

/** Collects the documented errors that tests meet, in a folder. */
export function collectErrors (folder: string): ErrorRecords {
  const records = join(folder, 'errors')
  mkdirSync(records)
  return {
    settings: { TEST_ERRORS: records },
    read: () => reportErrors(readdirSync(records).map((name) =>
      JSON.parse(readFileSync(join(records, name), 'utf8')) as ErrorRecord))
  }
}

/** Compares the documented errors with those that the answers to tests had. */
export function reportErrors (
  records: ErrorRecord[], reasons = REASONS
): { report: string[], failures: string[] } {
  const ofOperations = new Set(records.flatMap(({ documented }) => documented).filter(isOfOperation))
  const codes = new Set([...ofOperations].map(codeOf))
  // A document without the lab lacks codes that another document has.
  const others = records.flatMap(({ documented }) => documented)
    .filter((error) => !isOfOperation(error) && !codes.has(codeOf(error)))
  const documented = [...new Set([...ofOperations, ...others])]
  const met = new Set(records.flatMap(({ met }) => met))
  const metCodes = new Set([...met].map(codeOf))
  const unmet = documented.filter((error) => !met.has(error))

  const failures = [...new Set(documented.map(codeOf))].filter((code) => !metCodes.has(code)).sort()
    .map((code) => `no test met the error code ${code}`)
  const lines = [...new Set(unmet.map(errorOf))].sort().map((error) => {
    const isSame = (pair: OperationError): boolean => errorOf(pair) === error
    const reason = reasons[error.split(' ')[1]!]
    return `  ${error}: ${describe(unmet.filter(isSame), documented.filter(isSame))}` +
      (reason === undefined ? '' : ` (${reason})`)
  })
  const count = `${documented.length - unmet.length} of ${documented.length}`
  return { report: [`Tests met ${count} documented errors of operations. Never met:`, ...lines], failures }
}

/** Names operations, or those that are missing if they are fewer. */
function describe (pairs: OperationError[], all: OperationError[]): string {
  const missing = all.filter((pair) => !pairs.includes(pair))
  if (missing.length === 0) return all.length === 1 ? operationOf(all[0]!) : `all ${all.length} operations`
  if (pairs.length <= missing.length) return pairs.map(operationOf).join(', ')
  return `${pairs.length} operations, all but ${missing.map(operationOf).join(', ')}`
}

function isOfOperation (error: OperationError): boolean {
  return operationOf(error) !== '-'
}

function operationOf (error: OperationError): string {
  return error.split(' ')[0]!
}

function errorOf (error: OperationError): string {
  return error.slice(error.indexOf(' ') + 1)
}

function codeOf (error: OperationError): string {
  return error.split(' ')[2]!
}
