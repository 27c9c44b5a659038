import type { ErrorClass } from '../errors.ts'
import type { Operation } from './document.ts'
import { exampleOfError } from './error-responses.ts'
import { optional, sometimes } from './headers.ts'

/**
 * Makes the header fields optional that an answer only has when none of these errors replaces it. Such an error can
 * carry `Retry-After`.
 */
export function relaxReplaceable ({ responses }: Operation, errors: ErrorClass[]): void {
  for (const { status } of errors.map((CodedError) => exampleOfError(CodedError))) {
    const answer = responses[status]
    if (answer === undefined) continue
    // An account that limits its own requests chooses the form.
    const field = status === 429 ? 'Retry-Time' : 'Retry-After'
    answer.headers = optional({ ...answer.headers, 'Retry-After': sometimes(field) })
  }
}
