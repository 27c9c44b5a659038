import { Type, type Static } from '@sinclair/typebox'
import { NO_ADDITIONAL_PROPERTIES, ref, StringEnum } from '../http/common-schemas.ts'

const requests = Type.Integer({
  minimum: 1, maximum: 1_000_000, description: 'Number of requests that a window accepts', example: 100
})
const windowSeconds = Type.Integer({
  minimum: 1,
  maximum: 86_400,
  description: 'Length of a window by the clock of the account, in seconds. It begins with its first request',
  example: 60
})

// Generators name constants after the values, so one value in two enumerations would be one name twice.

export const LimitScopeSchema = StringEnum(['account', 'key'], {
  $id: 'LimitScope',
  description: 'Whose requests are counted together: those of the account, which is the default, or those of each key',
  example: 'account',
  'x-enum-varnames': ['PerAccount', 'PerKey']
})

export const LimitFieldsSchema = StringEnum(['ietf', 'x-ratelimit', 'none'], {
  $id: 'LimitFields',
  description: 'The fields on each counted response: `RateLimit` and `RateLimit-Policy`, which is the default; or ' +
    '`X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset`, which is in seconds; or none',
  example: 'ietf',
  'x-enum-varnames': ['IetfFields', 'XRateLimitFields', 'NoFields']
})

export const RetryAfterFormSchema = StringEnum(['seconds', 'date', 'none'], {
  $id: 'RetryAfterForm',
  description: 'The form of `Retry-After` on refused responses; `seconds` is the default',
  example: 'seconds',
  'x-enum-varnames': ['RetryAfterSeconds', 'RetryAfterDate', 'NoRetryAfter']
})

export const NewLimitsSchema = Type.Object({
  requests,
  windowSeconds,
  per: Type.Optional(ref(LimitScopeSchema)),
  fields: Type.Optional(ref(LimitFieldsSchema)),
  retryAfter: Type.Optional(ref(RetryAfterFormSchema))
}, {
  $id: 'NewLimits', ...NO_ADDITIONAL_PROPERTIES, description: 'A rate limit for the requests of your own account.'
})
export type NewLimits = Static<typeof NewLimitsSchema>

const count = (description: string) => Type.Integer({ minimum: 0, format: 'int64', description, example: 0 })

export const LimitsSchema = Type.Object({
  requests,
  windowSeconds,
  per: ref(LimitScopeSchema),
  fields: ref(LimitFieldsSchema),
  retryAfter: ref(RetryAfterFormSchema),
  refused: count('Number of requests that were refused since the limits were set'),
  early: count('Number of requests that came before the `Retry-After` of a refused one had passed')
}, { $id: 'Limits', description: 'The rate limit of an account, and what came of it.' })
export type Limits = Static<typeof LimitsSchema>
