import type { ErrorClass } from '../errors.ts'
import type { Operation } from './document.ts'
import { exampleOfError } from './error-responses.ts'
import { HEADERS, sometimes, type HeaderName } from './headers.ts'

/**
 * Makes the header fields optional that an answer only has when none of these errors replaces it. Such an error can
 * carry `Retry-After`.
 */
export function relaxReplaceable ({ responses }: Operation, errors: ErrorClass[]): void {
  for (const { status } of errors.map((CodedError) => exampleOfError(CodedError))) {
    const answer = responses[status]
    if (answer === undefined) continue
    const names = new Set([...Object.keys(answer.headers ?? {}), 'Retry-After'])
    for (const name of names) {
      if (name === 'Request-Id' || !(name in HEADERS)) continue
      answer.headers = { ...answer.headers, [name]: sometimes(name as HeaderName) }
    }
  }
}
