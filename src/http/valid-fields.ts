import type { TSchema } from '@sinclair/typebox'
import { buildValidatorCompiler } from './validator-compiler.ts'

/**
 * Validates fields by the rules for request bodies.
 *
 * @throws ValidationFailed
 */
export function valid<T> (schema: TSchema, fields: Record<string, unknown>): T {
  const given = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
  const result = buildValidatorCompiler({})({ schema: schema as object, httpPart: 'body' })(given)
  if ('error' in result) throw result.error
  return result.value as T
}
