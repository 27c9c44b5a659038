import * as errors from '../errors.ts'
import type { ErrorClass } from '../errors.ts'
import { explainPattern } from '../http/validation-messages.ts'
import { MERGE_PATCH } from '../plugins/content-type-parsers.ts'
import { exampleOf, resolve, type Answer, type Document, type Operation, type Schema } from './document.ts'
import { errorAnswers } from './error-responses.ts'
import {
  always, IDEMPOTENCY_KEY, IF_MATCH, IF_NONE_MATCH, LAST_EVENT_ID, LIMITS, sometimes, WRITE_IF_NONE_MATCH
} from './headers.ts'
import { codeSamples } from './code-samples.ts'

/** Facts about an operation that its schema does not contain: see `FastifyContextConfig`. */
export interface Facts { errors?: ErrorClass[], secret?: boolean, stream?: boolean, readBy?: string }

interface SuccessFacts { replayed: boolean, readBy: string | undefined }

const JSON_MEDIA = 'application/json'

/**
 * Completes an operation with everything that follows from its method, its schemas and its own errors.
 *
 * @param server the absolute address of the service, for the sample requests
 */
export function completeOperation (
  document: Document, server: string, path: string, method: string, facts: Facts
): void {
  const operation = document.paths[path]![method]!
  const write = method !== 'get'
  const conditional = method === 'patch' || method === 'delete'
  const replayed = write && facts.secret !== true

  operation.parameters = [
    ...operation.parameters ?? [],
    ...write ? [] : [IF_NONE_MATCH],
    ...conditional ? [IF_MATCH, WRITE_IF_NONE_MATCH] : [],
    ...replayed ? [IDEMPOTENCY_KEY] : []
  ]
  completeBody(document, operation, method)

  const { responses } = operation
  for (const [status, answer] of Object.entries(responses)) {
    completeSuccess(document, path, method, Number(status), answer, { replayed, readBy: facts.readBy })
  }
  if (!write) responses[304] = notModified(responses[200]!)
  const exampleValues = { validation_failed: [likelyViolation(document, operation)] }
  Object.assign(responses, errorAnswers(errorsOf(operation, method, facts), exampleValues))
  if (operation.deprecated === true) announceSuccessor(responses)
  for (const answer of Object.values(responses)) answer.headers = { ...LIMITS, ...answer.headers }

  if (facts.stream === true) announceStream(document, operation)

  operation['x-codeSamples'] = codeSamples(document, server, path, method)
  const stability = operation['x-stability']
  if (stability !== undefined) operation['x-badges'] = [{ name: stability }]
}

function completeBody (document: Document, { requestBody }: Operation, method: string): void {
  const media = requestBody?.content[JSON_MEDIA]
  if (requestBody === undefined || media?.schema === undefined) return
  media.example = exampleOf(document, media.schema)
  const { description } = resolve(document, media.schema)
  if (description !== undefined) requestBody.description = description
  if (method === 'patch') requestBody.content[MERGE_PATCH] = media
}

function completeSuccess (
  document: Document, path: string, method: string, status: number, answer: Answer, { replayed, readBy }: SuccessFacts
): void {
  const media = answer.content?.[JSON_MEDIA]
  const schema = media?.schema === undefined ? undefined : resolve(document, media.schema)
  const list = method === 'get' && schema?.type === 'array'
  if (list) answer.description = 'A page of the list.'
  if (media !== undefined && media.example === undefined && media.examples === undefined) {
    media.example = exampleOf(document, media.schema!)
  }

  answer.headers = { 'Request-Id': always('Request-Id'), ...answer.headers }
  if (schema !== undefined && status !== 202) answer.headers['ETag'] = always('ETag')
  if (list) answer.headers['Link'] = always('Link')
  if (replayed) answer.headers['Idempotency-Replayed'] = sometimes('Idempotency-Replayed')
  if (status === 201) {
    if (readOf(document, path, readBy) !== undefined) answer.headers['Location'] = always('Location')
    const links = linksOf(document, path, readBy)
    if (Object.keys(links).length > 0) answer.links = links
  }
}

/** Adds the stream as another media type of the 200, and `Event-Id` to each response that contains it. */
function announceStream (document: Document, { parameters = [], responses }: Operation): void {
  parameters.push(LAST_EVENT_ID)
  for (const status of [200, 304, 410, 412]) responses[status]!.headers!['Event-Id'] = always('Event-Id')
  const { content, headers } = responses[200]!
  const list = content![JSON_MEDIA]!
  const { oneOf = [] } = resolve(document, resolve(document, list.schema!).items!)
  const events = oneOf.map((schema) => exampleOf(document, schema) as { id: number, type: string })
  delete list.example
  list.examples = Object.fromEntries(events.map((event) => [event.type, { value: [event] }]))
  content!['text/event-stream'] = {
    schema: {
      type: 'string',
      description: 'Events with `id`, `event` (the type) and `data` (the event). The service sends a comment every ' +
        '15 seconds.'
    },
    example: events.map((event) => `id: ${event.id}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)[0]
  }
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
  const write = method !== 'get'
  const open = security?.length === 0
  return new Set<ErrorClass>([
    ...requestBody === undefined ? [] : [errors.InvalidJson, errors.InvalidContentType, errors.PayloadTooLarge],
    errors.ValidationFailed,
    errors.BadRequest,
    ...open ? [] : [errors.Unauthorized],
    ...write && !open ? [errors.ReadOnlyKey] : [],
    ...facts.errors ?? [],
    ...write && facts.secret !== true ? [errors.IdempotencyKeyInUse, errors.IdempotencyKeyReused] : [],
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

/** Returns the message of the most likely validation error of an operation. */
function likelyViolation (document: Document, { requestBody, parameters = [] }: Operation): string {
  const body = requestBody?.content[JSON_MEDIA]?.schema
  const [required] = body === undefined ? [] : resolve(document, body).required ?? []
  if (required !== undefined) return `${required} is required`
  const inPath = parameters.find((parameter) => parameter.in === 'path')
  if (inPath?.schema.pattern !== undefined) {
    return `Path parameter ${inPath.name} must ${explainPattern(inPath.schema.pattern)}`
  }
  if (inPath !== undefined) return `Path parameter ${inPath.name} must be written without leading zeros`
  const limit = parameters.find(({ name }) => name === 'limit')
  if (limit !== undefined) return `Query parameter limit must be ${limit.schema.maximum} or less`
  return 'Query parameter "page" is not allowed'
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

/** Returns the operation that reads the new record of a collection's POST, if there is one. */
function readOf ({ paths }: Document, path: string, readBy: string | undefined): Operation | undefined {
  if (readBy !== undefined) {
    return Object.values(paths).map(({ get }) => get).find((get) => get?.operationId === readBy)
  }
  return paths[itemOf(paths, path) ?? '']?.['get']
}

function itemOf (paths: Document['paths'], path: string): string | undefined {
  return Object.keys(paths).find((other) => other.startsWith(`${path}/{`) && other.endsWith('}'))
}

/** The runtime expression by which links name the id of a new record. */
const ID = '$response.body#/id'

/** Returns links to all operations that accept the id of a new record in their path, query or body. */
function linksOf (document: Document, path: string, readBy: string | undefined): Answer['links'] & object {
  const { paths } = document
  const links: Answer['links'] & object = {}
  const item = itemOf(paths, path)
  const idName = item?.slice(path.length + 2, -1)
  for (const [otherPath, methods] of Object.entries(paths)) {
    for (const { operationId, parameters, requestBody } of Object.values(methods)) {
      const parameter = parameters?.find(({ in: place, name, schema }) => acceptsId(otherPath, place, name, schema))
      if (parameter !== undefined) {
        links[operationId] = {
          operationId,
          parameters: { [parameter.name]: ID },
          description: `The \`id\` of the response is the \`${parameter.name}\` of \`${operationId}\`.`
        }
        continue
      }
      const body = requestBody?.content[JSON_MEDIA]?.schema
      const { required = [], properties = {} } = body === undefined ? {} : resolve(document, body)
      if (idName === undefined || !required.includes(idName)) continue
      const sent = required.map((name) => [name, name === idName ? ID : exampleOf(document, properties[name]!)])
      links[operationId] = {
        operationId,
        requestBody: Object.fromEntries(sent),
        description: `The \`id\` of the response is the \`${idName}\` in the body of \`${operationId}\`.`
      }
    }
  }
  if (readBy !== undefined) {
    links[readBy] = {
      operationId: readBy, description: `\`${readBy}\` returns the new record if you send the new API key.`
    }
  }
  return links

  function acceptsId (otherPath: string, place: string, name: string, schema: Schema): boolean {
    if (place !== 'path' && place !== 'query') return false
    if (name === idName) return true
    return otherPath === path && name === 'id' && schema.type !== undefined
  }
}
