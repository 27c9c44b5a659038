import * as errors from '../errors.ts'
import type { ErrorClass } from '../errors.ts'
import {
  exampleOf, resolve, type Answer, type Document, type Media, type Operation, type Parameter, type Schema
} from './document.ts'
import { errorAnswers } from './error-responses.ts'
import {
  always, idempotencyKey, IF_MATCH, IF_NONE_MATCH, LAST_EVENT_ID, sometimes, WRITE_IF_NONE_MATCH
} from './headers.ts'
import { linksOf, readOf } from './links.ts'

/** Facts about an operation that its schema does not contain: see `FastifyContextConfig`. */
export interface Facts {
  errors?: ErrorClass[]
  secret?: boolean
  readsOnly?: boolean
  stream?: boolean
  representations?: Record<string, Schema>
  readBy?: string
  collection?: string
  examples?: Record<string, unknown>
  /** Descriptions of query parameters whose schema is a reference, which has no description of its own. */
  descriptions?: Record<string, string>
}

interface SuccessFacts { replayed: boolean, readBy: string | undefined }

const JSON_MEDIA = 'application/json'
const EVENT_STREAM = 'text/event-stream'

/** Descriptions of successes. Those of the schemas would say again what viewers show beside them. */
const SUCCESSES: Record<string, string> = {
  'get 200': 'The record.',
  'post 201': 'The new record.',
  'put 200': 'The record after the change.',
  'patch 200': 'The record after the change.'
}

/** Completes an operation with everything that follows from its method, its schemas and its own errors. */
export function completeOperation (document: Document, path: string, method: string, facts: Facts): void {
  const operation = document.paths[path]![method]!
  const write = method !== 'get'
  const conditional = ['put', 'patch', 'delete'].includes(method)
  const replayed = takesKey(method, facts)

  operation.parameters = [
    ...operation.parameters ?? [],
    ...write ? [] : [IF_NONE_MATCH],
    ...conditional ? [IF_MATCH, WRITE_IF_NONE_MATCH] : [],
    ...replayed ? [idempotencyKey(operation.operationId)] : []
  ].map((parameter) => completeParameter(document, parameter, facts))
  completeBody(document, operation, facts)

  const { responses } = operation
  for (const [status, answer] of Object.entries(responses)) {
    const { collection = path, readBy } = facts
    completeSuccess(document, collection, method, Number(status), answer, { replayed, readBy })
  }
  if (!write) responses[304] = notModified(responses[200]!)
  const failures = errorAnswers(errorsOf(operation, method, facts))
  if (method === 'patch') failures[400]!.headers!['Accept-Patch'] = sometimes('Accept-Patch')
  Object.assign(responses, failures)
  const codes = Object.values(failures).flatMap(({ content }) => Object.keys(content![JSON_MEDIA]!.examples ?? {}))
  operation['x-error-codes'] = [...new Set(codes)]
  if (operation.deprecated === true) announceSuccessor(responses)
  if (facts.stream === true) announceEvents(document, operation)
  if (facts.representations !== undefined) announceRepresentations(document, operation, facts.representations)

  const stability = operation['x-stability']
  // Viewers read one or the other.
  if (stability !== undefined) operation['x-badges'] = [{ name: stability, label: stability }]
}

/** Tells whether an operation takes an `Idempotency-Key`. A PUT can be repeated without one. */
function takesKey (method: string, { secret, readsOnly }: Facts): boolean {
  return method !== 'get' && method !== 'put' && secret !== true && readsOnly !== true
}

/** Moves the example from the schema to the parameter, where all tools look for it, and adds a missing description. */
function completeParameter (
  document: Document, parameter: Parameter, { examples = {}, descriptions = {} }: Facts
): Parameter {
  const { name, schema } = parameter
  const { example: _, ...bare } = schema
  if (bare.items?.example !== undefined) {
    const { example: _, ...items } = bare.items
    bare.items = items
  }
  const description = parameter.description ?? descriptions[name]
  return {
    ...parameter,
    ...description === undefined ? {} : { description },
    schema: bare,
    example: examples[name] ?? parameter.example ?? exampleOf(document, schema)
  }
}

function completeBody (document: Document, { requestBody }: Operation, { examples = {} }: Facts): void {
  const media = onlyMediaOf(requestBody?.content)
  if (requestBody === undefined || media?.schema === undefined) return
  media.example = examples['body'] ?? exampleOf(document, media.schema)
  // The schema has a description, and viewers show both.
  delete requestBody.description
}

/** Before the stream of events is added, all content has one media type. */
function onlyMediaOf (content: Record<string, Media> = {}): Media | undefined {
  return Object.values(content)[0]
}

function completeSuccess (
  document: Document, path: string, method: string, status: number, answer: Answer, { replayed, readBy }: SuccessFacts
): void {
  const media = onlyMediaOf(answer.content)
  const schema = media?.schema === undefined ? undefined : resolve(document, media.schema)
  const list = method === 'get' && schema?.type === 'array'
  answer.description = list ? 'A page of the list.' : SUCCESSES[`${method} ${status}`] ?? answer.description
  if (media !== undefined && media.example === undefined && media.examples === undefined) {
    media.example = exampleOf(document, media.schema!)
  }

  answer.headers = { 'Request-Id': always('Request-Id'), ...answer.headers }
  if (schema !== undefined && status !== 202) answer.headers['ETag'] = always('ETag')
  if (list) answer.headers['Link'] = always('Link')
  if (replayed) answer.headers['Idempotency-Replayed'] = always('Idempotency-Replayed')
  if (status === 201) {
    if (readOf(document, path, readBy) !== undefined) answer.headers['Location'] = always('Location')
    const links = linksOf(document, path, readBy)
    if (Object.keys(links).length > 0) answer.links = links
  }
}

/** Adds the stream to the list of events, an example of each event, and `Event-Id` to the responses that have it. */
function announceEvents (document: Document, operation: Operation): void {
  const { responses } = operation
  announceRepresentations(document, operation, { [EVENT_STREAM]: { $ref: 'EventStreamMessage#' } })
  for (const status of [200, 304, 410, 412]) responses[status]!.headers!['Event-Id'] = always('Event-Id')
  const list = responses[200]!.content![JSON_MEDIA]!
  const { oneOf = [] } = resolve(document, resolve(document, list.schema!).items!)
  const events = oneOf.map((schema) => exampleOf(document, schema) as { id: number, type: string })
  delete list.example
  list.examples = Object.fromEntries(events.map((event) => [event.type, { value: [event] }]))
}

/** Adds other media types to a list, by references to schemas. */
function announceRepresentations (
  document: Document, { parameters = [], responses }: Operation, representations: Record<string, Schema>
): void {
  const { content, headers } = responses[200]!
  for (const [media, { $ref = '' }] of Object.entries(representations)) {
    const schema = { $ref: `#/components/schemas/${$ref.replace('#', '')}` }
    content![media] = { schema, example: exampleOf(document, schema) }
  }
  if (!(EVENT_STREAM in representations)) return
  parameters.push(LAST_EVENT_ID)
  headers!['X-Accel-Buffering'] = sometimes('X-Accel-Buffering')
  // A stream has neither field.
  for (const name of ['ETag', 'Link'] as const) headers![name] = responses[304]!.headers![name] = sometimes(name)
}

function notModified ({ headers = {} }: Answer): Answer {
  return {
    description: 'The content has not changed: `If-None-Match` contains the current ETag.', headers: { ...headers }
  }
}

/** Returns the errors of an operation: its own, and those that follow from its method and schemas. */
function errorsOf ({ security, requestBody }: Operation, method: string, facts: Facts): Set<ErrorClass> {
  const write = method !== 'get' && facts.readsOnly !== true
  const open = security?.length === 0
  return new Set<ErrorClass>([
    ...requestBody === undefined ? [] : [errors.InvalidJson, errors.InvalidContentType, errors.PayloadTooLarge],
    errors.ValidationFailed,
    errors.BadRequest,
    ...open ? [] : [errors.Unauthorized],
    ...write && !open ? [errors.ReadOnlyKey] : [],
    ...facts.errors ?? [],
    ...write && !open && ['post', 'patch'].includes(method) ? [errors.StorageLimitReached] : [],
    ...takesKey(method, facts) ? [errors.IdempotencyKeyInUse, errors.IdempotencyKeyReused] : [],
    errors.PreconditionFailed,
    errors.RequestTimeout,
    errors.UriTooLong,
    errors.HeadersTooLarge,
    errors.RateLimited,
    errors.InternalError,
    errors.Overloaded,
    errors.DatabaseUnavailable,
    errors.ShuttingDown
  ])
}

/** Adds `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and the link to the successor to the operation's responses. */
function announceSuccessor (responses: Record<string, Answer>): void {
  for (const [status, answer] of Object.entries(responses)) {
    const promised = ['200', '304', '404', '410'].includes(status)
    if (!promised && status !== '412' && !status.startsWith('5')) continue
    const present = promised ? always : sometimes
    answer.headers = {
      ...answer.headers,
      Deprecation: present('Deprecation'),
      Sunset: present('Sunset'),
      Link: present('Successor')
    }
  }
}
