import { Type, type TSchema } from '@sinclair/typebox'
import type { ErrorClass } from '../errors.ts'
import { NO_ADDITIONAL_PROPERTIES, ref, StringEnum } from '../http/common-schemas.ts'
import { exampleOfError, inOrder } from './error-responses.ts'

/** Returns the components ErrorCode, the closed list of codes, and Error, the body of every error response. */
export function errorSchemas (classes: ErrorClass[]): TSchema[] {
  const errors = inOrder(classes.map((CodedError) => exampleOfError(CodedError)))
  const statuses = [...new Set(errors.map(({ status }) => status))]
  const codesOf = (status: number): string =>
    errors.filter((error) => error.status === status).map(({ code }) => `\`${code}\``).join(', ')
  const ErrorCodeSchema = StringEnum([...new Set(errors.map(({ code }) => code))], {
    $id: 'ErrorCode',
    description: ['A machine-readable error code, from a closed list:', ...statuses.map((status) =>
      `- ${status}: ${codesOf(status)}`)].join('\n'),
    example: 'validation_failed'
  })
  const ErrorSchema = Type.Object({
    code: ref(ErrorCodeSchema),
    message: Type.String({
      description: 'Human-readable message: the error and how to fix it',
      example: 'Query parameter limit must be 100 or less.'
    }),
    status: Type.Integer({ description: 'HTTP status of the response', example: 400 })
  }, { $id: 'Error', ...NO_ADDITIONAL_PROPERTIES, description: 'The body of every error response.' })
  return [ErrorCodeSchema, ErrorSchema]
}
