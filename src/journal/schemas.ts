import { Type, type Static } from '@sinclair/typebox'
import { HeaderFieldSchema } from '../deliveries/schemas.ts'
import { Id, NO_ADDITIONAL_PROPERTIES, ref, StringEnum, Text, Timestamp } from '../http/common-schemas.ts'

/** What became of a request. */
export const OUTCOMES = ['answered', 'lost', 'cut', 'left', 'refused'] as const
export type Outcome = (typeof OUTCOMES)[number]

const count = (description: string, example: number) =>
  Type.Integer({ format: 'int64', minimum: 0, description, example })
const ms = (description: string, example: number) =>
  Type.Integer({ format: 'int64', minimum: 0, description: `${description}, in milliseconds`, example })

const keep = Type.Integer({
  minimum: 1,
  maximum: 10_000,
  description: 'How many requests the journal keeps. The oldest ones go first',
  example: 1_000
})

export const NewJournalSchema = Type.Object({ keep }, {
  $id: 'NewJournal', ...NO_ADDITIONAL_PROPERTIES, description: 'A journal to turn on, or to change.'
})

export const JournalSchema = Type.Object({
  keep,
  requests: count('Number of requests in the journal', 12),
  bytes: count('Their size, at most 16 MB', 9_216),
  dropped: count('Number of requests that could not be recorded', 0)
}, { $id: 'Journal', description: 'The journal of the account, which records its requests.' })
export type Journal = Static<typeof JournalSchema>

const operation = Text(1, 100, 'The operationId of the request', 'placeOrder')
const method = Type.String({ minLength: 1, maxLength: 20, description: 'The method of the request', example: 'POST' })
const path = Text(1, 8_192, 'The path of the request, with its query', '/store/orders')
const status = Type.Integer({
  minimum: 100, maximum: 599, description: 'The HTTP status of the response', example: 201
})
const keyId = Id('The API key of the request', 1)
const run = Text(1, 255, 'The value of `Petstore-Run`, a name that a test gives itself', 'test-7')
export const RequestOutcomeSchema = StringEnum(OUTCOMES, {
  $id: 'RequestOutcome',
  description: '`answered`: the response was sent. `lost`: a fault closed the connection instead of the response. ' +
    '`cut`: a fault closed it within the response. `left`: the connection ended before the response was complete. ' +
    '`refused`: the service did not handle the request, because of a fault, a limit (429) or its load (503)',
  example: 'answered'
})

const outcome = ref(RequestOutcomeSchema)

export const RequestProblemSchema = Type.Object({
  pointer: Type.String({
    description: 'A JSON pointer into the request, which begins with `/body`, `/query`, `/path` or `/headers`; empty ' +
      'if the problem has no place',
    example: '/body/quantity'
  }),
  rule: Type.String({
    description: 'The broken rule: a keyword of JSON Schema such as `minimum`, or the error code', example: 'minimum'
  })
}, { $id: 'RequestProblem', description: 'What was wrong with a request, and where.' })

export const RecordedRequestSchema = Type.Object({
  id: Id('Identifier of the request, ascending in the order in which responses ended', 1),
  at: Timestamp('Time at which the request arrived'),
  durationMs: ms('Time until the response ended', 12),
  operation,
  method,
  path,
  keyId,
  run: Type.Optional(run),
  fields: Type.Array(ref(HeaderFieldSchema), { description: 'The header fields of the request, in order' }),
  body: Type.Optional(Type.String({ description: 'The body of the request, up to 16 KB', example: '{"petId":7}' })),
  bodyTruncated: Type.Optional(Type.Boolean({ description: 'The body was longer', example: true })),
  status: Type.Optional(status),
  answerFields: Type.Optional(Type.Array(ref(HeaderFieldSchema), { description: 'The header fields of the response' })),
  answer: Type.Optional(Type.String({
    description: 'What was sent of the body of the response, up to 16 KB', example: '{"id":3,"petId":7,"quantity":1}'
  })),
  answerTruncated: Type.Optional(Type.Boolean({ description: 'The body was longer', example: true })),
  outcome,
  faultId: Type.Optional(Id('The fault that hit the request', 1)),
  idempotencyKey: Type.Optional(Type.String({ description: 'The Idempotency-Key of a write', example: 'order-1' })),
  replayed: Type.Optional(Type.Boolean({ description: 'The response was that to an earlier request', example: true })),
  problem: Type.Optional(ref(RequestProblemSchema)),
  attemptOf: Type.Optional(Id('The first request with the same Idempotency-Key. A request without a key belongs to ' +
    'one with the same method, path and body that ended within the minute before', 1)),
  pauseMs: Type.Optional(ms('Time since the last attempt of the request ended', 1_000))
}, { $id: 'RecordedRequest', description: 'A request of the account, and what became of it.' })
export type RecordedRequest = Static<typeof RecordedRequestSchema>

export const RequestMatchSchema = Type.Object({
  operation: Type.Optional(operation),
  method: Type.Optional(method),
  path: Type.Optional(path),
  status: Type.Optional(status),
  keyId: Type.Optional(keyId),
  run: Type.Optional(run),
  outcome: Type.Optional(outcome)
}, {
  $id: 'RequestMatch',
  ...NO_ADDITIONAL_PROPERTIES,
  description: 'Which requests are meant: those that equal all its members. A `path` without a query matches any ' +
    'query.',
  example: { operation: 'placeOrder' }
})

const times = (description: string, example: number) =>
  Type.Optional(Type.Integer({ minimum: 0, maximum: 10_000, description, example }))

const CheckTimes = Type.Object({
  exactly: times('Exactly so many', 2), atLeast: times('At least so many', 1), atMost: times('At most so many', 3)
}, {
  ...NO_ADDITIONAL_PROPERTIES,
  minProperties: 1,
  description: 'How many requests must match: `exactly`, or `atLeast`, `atMost` or both.',
  example: { atLeast: 0 }
})

const pause = (description: string, example: number) => Type.Optional(Type.Integer({
  minimum: 0, maximum: 86_400_000, description: `${description}, in milliseconds`, example
}))

export const RequestCheckSchema = Type.Object({
  match: ref(RequestMatchSchema),
  times: CheckTimes,
  sameIdempotencyKey: Type.Optional(Type.Boolean({
    description: '`true`: all matching requests must have the same Idempotency-Key. `false`: each must have another ' +
      'one',
    example: true
  })),
  minPauseMs: pause('The shortest allowed pause before each further attempt', 1_000),
  maxPauseMs: pause('The longest allowed pause before each further attempt', 5_000),
  inOrder: Type.Optional(Type.Array(ref(RequestMatchSchema), {
    minItems: 1, maxItems: 100, description: 'Among the matching requests there must be these, in this order of arrival'
  }))
}, {
  $id: 'RequestCheck',
  ...NO_ADDITIONAL_PROPERTIES,
  description: 'What must be so of the requests in the journal.',
  example: { match: { operation: 'placeOrder' }, times: { atLeast: 0 }, sameIdempotencyKey: true, minPauseMs: 1_000 }
})
export type RequestCheck = Static<typeof RequestCheckSchema>

const RequestDifference = Type.Object({
  id: Type.Optional(Id('The request that shows it', 2)),
  text: Type.String({
    description: 'A sentence', example: 'The second attempt came after 12 ms; Retry-After asked for 1000 ms.'
  })
})

export const RequestVerdictSchema = Type.Object({
  passed: Type.Boolean({ description: 'Whether there is no difference', example: true }),
  actual: count('Number of matching requests', 2),
  requests: Type.Array(Type.Integer({ format: 'int64', minimum: 1, example: 1 }), {
    description: 'Their ids, in order of arrival'
  }),
  differences: Type.Array(RequestDifference, { description: 'What is not so' })
}, { $id: 'RequestVerdict', description: 'The result of a check.' })
export type RequestVerdict = Static<typeof RequestVerdictSchema>

export const RequestStreamMessageSchema = Type.Object({
  id: Type.String({ pattern: '^[1-9][0-9]*$', description: 'The id of the request', example: '1' }),
  event: StringEnum(['request']),
  data: Type.String({
    description: 'The recorded request as JSON text',
    example: '{"id":1,"at":"2026-11-21T10:00:00.000Z","durationMs":12,"operation":"listPets","method":"GET",' +
      '"path":"/pets","keyId":1,"fields":[],"status":200,"answerFields":[],"answer":"[]","outcome":"answered"}'
  })
}, {
  $id: 'RequestStreamMessage',
  description: 'A message of the stream of requests, as an EventSource delivers it: `id`, `event` and `data` are its ' +
    'fields.'
})

export const HttpArchiveSchema = Type.Object({
  log: Type.Unsafe<object>({
    type: 'object',
    description: 'The requests as the HTTP Archive format 1.2 has them, with additions such as `_outcome`',
    example: { version: '1.2', creator: { name: 'petstore', version: '1' }, entries: [] }
  })
}, { $id: 'HttpArchive', description: 'A page of the journal as HAR 1.2.' })

export const RequestQuery = Type.Object({
  operation: Type.Optional(Text(1, 100, 'Only requests of this operation', 'listPets')),
  status: Type.Optional(Type.Integer({
    minimum: 100, maximum: 599, description: 'Only requests with this status of the response', example: 200
  })),
  keyId: Type.Optional(Id('Only requests with this API key', 1)),
  run: Type.Optional(Text(1, 255, 'Only requests with this value of `Petstore-Run`', 'demo')),
  after: Type.Optional(Type.Integer({
    format: 'int64', minimum: 0, description: 'Only requests after the one with this id', example: 0
  })),
  limit: Type.Optional(Type.Integer({
    minimum: 1, maximum: 100, default: 20, description: 'Maximum number of requests to return', example: 20
  }))
}, NO_ADDITIONAL_PROPERTIES)
export type RequestFilters = Omit<Static<typeof RequestQuery>, 'after' | 'limit'>

export const RequestParams = Type.Object({ requestId: Id('Id of the request', 1) }, NO_ADDITIONAL_PROPERTIES)
