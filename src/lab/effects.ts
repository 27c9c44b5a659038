import { Type, type Static, type TObject, type TProperties } from '@sinclair/typebox'
import { NO_ADDITIONAL_PROPERTIES, StringEnum } from '../http/common-schemas.ts'
import { describedPattern } from '../http/validation-messages.ts'

/** The ways to corrupt an answer, and then those to corrupt the call of a webhook. */
const ANSWER_CORRUPTIONS = ['invalid_json', 'wrong_type', 'missing_field', 'unknown_enum', 'unknown_field'] as const
const CALL_CORRUPTIONS = ['bad_signature', 'old_timestamp', 'duplicate'] as const

/** Defines one type of effect, as a component with a name such as DelayEffect. */
function effect<const Type extends string, Members extends TProperties> (
  type: Type, description: string, members: Members
): TObject<Members & { type: ReturnType<typeof StringEnum<Type>> }> {
  return Type.Object({ type: StringEnum([type]), ...members }, {
    $id: nameOf(type), ...NO_ADDITIONAL_PROPERTIES, description
  })
}

function nameOf (type: string): string {
  return type.split('_').map((word) => word[0]!.toUpperCase() + word.slice(1)).join('') + 'Effect'
}

const integer = (minimum: number, maximum: number, description: string, example: number) =>
  Type.Integer({ minimum, maximum, description, example })

/** `status` is an integer of a list, which StringEnum cannot express. */
const status = <const T extends number>(values: readonly T[], example: T) =>
  Type.Unsafe<T>({ type: 'integer', enum: [...values], description: 'HTTP status of the response', example })

const delay = effect('delay', 'The service handles the request and sends the response later.', {
  ms: integer(1, 60_000, 'Time by which the response is late, in milliseconds', 2_000)
})
const refuse = effect('refuse', 'The service does not handle the request. The response is an error.', {
  status: status([408, 429, 500, 502, 503, 504], 503),
  retryAfter: Type.Optional(integer(0, 86_400, 'The value of `Retry-After`, in seconds; 1 by default', 1))
})
const reset = effect('reset', 'The service does not handle the request. It closes the connection without a byte.', {})
const loseAnswer = effect(
  'lose_answer', 'The service handles and commits the request. Then it closes the connection without a byte.', {}
)
const replaceAnswer = effect(
  'replace_answer', 'The service handles and commits the request. The response is an error.', {
    status: status([500, 502, 503, 504], 502)
  })
const truncate = effect(
  'truncate', 'The service handles the request and closes the connection within the body, although ' +
    '`Content-Length` has promised all of it.', {
    bytes: integer(0, 1_000_000, 'Number of bytes of the body that are sent', 10)
  })
const trickle = effect('trickle', 'The service handles the request and sends the body slowly.', {
  bytesPerSecond: integer(1, 100_000, 'Speed of the body', 100)
})
const corrupt = effect(
  'corrupt', 'The service handles the request. The body differs from the document in one way. The last three values ' +
    'are for requests to webhooks.', {
    how: StringEnum([...ANSWER_CORRUPTIONS, ...CALL_CORRUPTIONS], {
      description: 'What is wrong with the body, or with the request to a webhook', example: 'missing_field'
    })
  })

const reorder = effect(
  'reorder', 'Only for requests to webhooks: the next event goes first. Without one, the event is sent after 10 ' +
    'seconds.', {}
)
const redirect = effect(
  'redirect', 'Only for requests to webhooks: the service does not call the receiver. The response is a 302, so the ' +
    'attempt counts as failed.', {
    location: Type.String({
      minLength: 1,
      maxLength: 2048,
      pattern: describedPattern('^[!-~]+$', 'consist of visible ASCII characters'),
      description: 'The value of `Location`',
      example: 'https://example.com/moved'
    })
  })

export const EFFECTS = [
  delay, refuse, reset, loseAnswer, replaceAnswer, truncate, trickle, corrupt, reorder, redirect
]

export type Effect =
  | Static<typeof delay> | Static<typeof refuse> | Static<typeof reset> | Static<typeof loseAnswer> |
  Static<typeof replaceAnswer> | Static<typeof truncate> | Static<typeof trickle> | Static<typeof corrupt> |
  Static<typeof reorder> | Static<typeof redirect>

const typeOf = ({ properties: { type } }: TObject): string => (type as unknown as { enum: [string] }).enum[0]

export const EffectSchema = Type.Unsafe<Effect>({
  $id: 'FaultEffect',
  description: 'What happens to the requests that the fault hits.',
  type: 'object',
  discriminator: {
    propertyName: 'type',
    mapping: Object.fromEntries(EFFECTS.map((schema) => [typeOf(schema), `#/components/schemas/${schema.$id}`]))
  },
  oneOf: EFFECTS.map((schema) => ({ $ref: `${schema.$id}#` })),
  example: { type: 'lose_answer' }
})

/** The effects that a fault of the operation `webhook` can have. */
export function isEffectOfCalls (effect: Effect): boolean {
  if (effect.type === 'corrupt') return CALL_CORRUPTIONS.some((how) => how === effect.how)
  return ['delay', 'lose_answer', 'reset', ...EFFECTS_OF_CALLS_ALONE].includes(effect.type)
}

const EFFECTS_OF_CALLS_ALONE = ['reorder', 'redirect']

/** The effects that a fault of any other operation can have. */
export function isEffectOfAnswers (effect: Effect): boolean {
  if (EFFECTS_OF_CALLS_ALONE.includes(effect.type)) return false
  return effect.type !== 'corrupt' || ANSWER_CORRUPTIONS.some((how) => how === effect.how)
}
