import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Answer, Document } from '../../src/openapi/document.ts'
import { exampleCodes } from './expand-components.ts'

/** An error of an operation, such as `getPet 404 pet_not_found`. Errors of no operation begin with `-`. */
export type OperationError = `${string} ${number} ${string}`

/** What a test process knows of errors when it ends. */
interface ErrorRecord { documented: OperationError[], met: OperationError[] }

/** The folder of the records, which the suite sets. */
const FOLDER = process.env['TEST_ERRORS']

const documented = new Set<OperationError>()
const met = new Set<OperationError>()

if (FOLDER !== undefined) {
  process.once('exit', () => {
    const record: ErrorRecord = { documented: [...documented], met: [...met] }
    if (documented.size > 0) writeFileSync(join(FOLDER, `${process.pid}-${Date.now()}.json`), JSON.stringify(record))
  })
}

/** Notes the errors of a document, whose components are written out, and the codes of the service that it lacks. */
export function recordDocumented ({ paths }: Document, all: Array<{ code: string, status: number }>): void {
  const codes = new Set<string>()
  for (const { operationId, responses } of Object.values(paths).flatMap((methods) => Object.values(methods))) {
    for (const [status, answer] of Object.entries<Answer>(responses)) {
      if (Number(status) < 400) continue
      for (const code of exampleCodes(answer)) {
        codes.add(code)
        documented.add(`${operationId} ${Number(status)} ${code}`)
      }
    }
  }
  for (const { code, status } of all) if (!codes.has(code)) documented.add(`- ${status} ${code}`)
}

/** Notes an error of an operation, or of a request that reached none. */
export function recordMet (operationId: string | undefined, status: number, code: string): void {
  met.add(`${operationId ?? '-'} ${status} ${code}`)
}

/** Returns the documented codes that no answer to a test had, from the records of a whole suite. */
export function codesThatNoTestMet (folder: string): string[] {
  const records = readdirSync(folder).map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as ErrorRecord)
  const codesOf = (errors: OperationError[]): string[] => errors.map((error) => error.split(' ')[2]!)
  const met = new Set(records.flatMap((record) => codesOf(record.met)))
  return [...new Set(records.flatMap(({ documented }) => codesOf(documented)))].filter((code) => !met.has(code)).sort()
}
