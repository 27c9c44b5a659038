import type { Event, operations as Operations } from '../generated/client/openapi.ts'
import { operations } from '../generated/client/operations.ts'
import { answerOf, type Received } from './answer.ts'
import { ConnectionError } from './errors.ts'
import { followEvents, type FollowOptions, type OpenedStream } from './event-feed.ts'
import { addFields, type HeaderFields, type HeadersLike } from './header-fields.ts'
import type { CallOptions, Method, OperationFacts, OperationId } from './methods.ts'
import { checkKey, checkObject, queryOf, readLimits, readUrl, segmentOf, type Limits } from './options.ts'
import { createRateLimit, type RateLimit } from './rate-limit.ts'
import { fetchResponse, readAnswer, readError, type Fetch, type Outgoing } from './requests.ts'
import { untilAllowed, withRetries } from './retries.ts'

// `petstore-lab/client`: a client for Node and browsers. It imports nothing of the service but what the OpenAPI
// document says. The build bundles it into one file without imports.

export type * from '../generated/client/openapi.ts'
export { ConnectionError, PetstoreError, RedirectError, WebhookVerificationError, type ErrorCode } from './errors.ts'
export type { FollowOptions } from './event-feed.ts'
export type { HeadersLike } from './header-fields.ts'
export type { Answer, CallOptions, OperationId } from './methods.ts'
export { verifyWebhook, type ReceivedWebhook, type TestEvent } from './webhooks.ts'

export interface ClientOptions {
  /** The address of the service, with its base path. */
  url: string | URL
  /** An API key of an account. Only `createAccount` needs none. */
  apiKey?: string | undefined
  /** The time for each attempt of a request, with its answer. Default: 30 s. */
  timeoutMs?: number | undefined
  /** How often a request that failed is sent again. Default: 4. */
  retries?: number | undefined
  /** Header fields for every request. */
  headers?: HeadersLike | undefined
  /** Replaces the global `fetch`. The client gives it a text as address. */
  fetch?: Fetch | undefined
}

/** A method for each operation of the document, by its operationId, and the feed. */
export type Client = { [Id in OperationId]: Method<Operations[Id]> } & {
  /**
   * Iterates over the events of the store as they happen, in order and without a gap. It reconnects when the connection
   * breaks, and ends when the signal is aborted or the loop ends.
   */
  followEvents: (options?: FollowOptions) => AsyncGenerator<Event, void, undefined>
}

interface Session {
  url: string
  fields: HeaderFields
  limits: Limits
  rateLimit: RateLimit
  fetch: Fetch
}

type Options = CallOptions & { headers?: HeadersLike | undefined }

const DEFAULTS: Limits = { timeoutMs: 30_000, retries: 4 }

/**
 * Creates a client of one account.
 *
 * @throws {TypeError | RangeError} that says what is wrong with an option
 */
export function createClient (options: ClientOptions): Client {
  checkObject('The options of createClient', options)
  const { url, apiKey, headers, fetch } = options
  const fields: HeaderFields = new Map()
  if (apiKey !== undefined) {
    checkKey(apiKey)
    fields.set('authorization', `Bearer ${apiKey}`)
  }
  addFields(fields, headers)
  if (fetch !== undefined && typeof fetch !== 'function') throw new TypeError('fetch must be a function')
  const session: Session = {
    url: readUrl(url),
    fields,
    limits: readLimits(options, DEFAULTS),
    rateLimit: createRateLimit(),
    fetch: fetch ?? (async (address, init) => await globalThis.fetch(address, init))
  }
  const methods = Object.entries(operations).map(([id, facts]) =>
    [id, (...args: unknown[]) => call(session, id, facts, args)])
  return Object.assign(Object.fromEntries(methods), {
    followEvents: (options?: FollowOptions) => followEvents({
      untilAllowed: async (signal) => {
        await untilAllowed(() => session.rateLimit.waitMs(operations.listEvents), signal)
      },
      open: async (position, signal) => await openStream(session, position, signal)
    }, options)
  }) as Client
}

/** Calls an operation. Its arguments are the ids of the path, the query or the body, and the options. */
function call (session: Session, id: string, facts: OperationFacts, args: unknown[]): Promise<unknown> {
  const send = async (search?: string): Promise<Received<unknown>> => {
    const rest = [...args]
    const pathIds = rest.splice(0, facts.ids?.length ?? 0)
    const data = facts.sends === undefined ? undefined : rest.shift()
    const options = (rest.shift() ?? {}) as Options
    checkObject(`The options of ${id}`, options)
    const request = prepare(session, id, facts, { pathIds, data, options })
    if (search !== undefined) {
      request.url = `${request.url.split('?')[0]!}?${search}`
      // These are about the first page.
      for (const name of ['if-match', 'if-none-match', 'last-event-id']) request.fields.delete(name)
    }
    const { rateLimit } = session
    const waitMs = (): number => rateLimit.waitMs(facts)
    const policy = { ...readLimits(options, session.limits), signal: options.signal, waitMs }
    const isRepeatable = ['GET', 'PUT'].includes(request.method) || request.fields.has('idempotency-key')
    return await withRetries(policy, isRepeatable, async (signal) => {
      const response = await fetchResponse(session.fetch, request, signal)
      rateLimit.note(facts, response)
      return await readAnswer(response, request, facts)
    })
  }
  return answerOf(send(), facts.success.content === 'list' ? send : undefined)
}

interface Arguments { pathIds: unknown[], data: unknown, options: Options }

/** Returns the request of a call. @throws {TypeError} that says what is wrong with an argument */
function prepare (
  session: Session, id: string, facts: OperationFacts, { pathIds, data, options }: Arguments
): Outgoing {
  const fields = new Map(session.fields)
  // The key stays the same in all attempts: the service answers a repetition without a second effect.
  if (facts.isKeyed === true) fields.set('idempotency-key', newKey())
  const { bodyType = 'application/json' } = facts
  const body = facts.sends === 'body' && data !== undefined ? bodyOf(id, facts, data) : undefined
  if (body !== undefined) fields.set('content-type', bodyType)
  addFields(fields, options.headers)
  const path = (facts.ids ?? []).reduce((path, name, i) =>
    path.replace(`{${name}}`, () => segmentOf(pathIds[i], `${id} needs the ${name}`)), facts.path)
  const query = facts.sends === 'query' ? queryOf(data, id) : ''
  return { method: facts.method.toUpperCase(), url: session.url + path + (query && `?${query}`), fields, body }
}

function bodyOf (id: string, { bodyType }: OperationFacts, data: unknown): string {
  if (bodyType === undefined) return JSON.stringify(data)
  if (typeof data !== 'string') throw new TypeError(`The body of ${id} must be text of the type ${bodyType}`)
  return data
}

async function openStream (
  { url, fields, fetch, rateLimit }: Session, position: number | undefined, signal: AbortSignal
): Promise<OpenedStream> {
  const facts = operations.listEvents
  const { method, path, success } = facts
  const accepting = new Map(fields).set('accept', 'text/event-stream')
  if (position !== undefined) accepting.set('last-event-id', String(position))
  const request = { method: method.toUpperCase(), url: url + path, fields: accepting, body: undefined }
  const response = await fetchResponse(fetch, request, signal)
  rateLimit.note(facts, response)
  const { status, headers, body } = response
  if (status !== success.status) throw await readError(response)
  if (!(headers.get('content-type') ?? '').startsWith('text/event-stream') || body === null) {
    throw new ConnectionError('The response is not an event stream', { status })
  }
  const newest = headers.get('event-id')
  return { body, newest: newest === null ? undefined : Number(newest) }
}

/** Returns a random `Idempotency-Key`. Browsers have `randomUUID` only in pages that come over HTTPS. */
function newKey (): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}
