import createFetchClient from 'openapi-fetch'
import type { Event, operations as Operations } from '../generated/client/openapi.ts'
import { operations } from '../generated/client/operations.ts'
import { answerOf, type Received } from './answer.ts'
import { ConnectionError, connectionErrorOf, errorOf } from './errors.ts'
import { followEvents, type FollowOptions, type OpenedStream } from './event-feed.ts'
import type { CallOptions, Method, OperationFacts, OperationId } from './methods.ts'
import { withRetries } from './retries.ts'

// `petstore-lab/client`: a client for Node and browsers. It imports nothing of the service but what the OpenAPI document
// says. The build bundles it into one file without imports.

export type * from '../generated/client/openapi.ts'
export { ConnectionError, PetstoreError, type ErrorCode } from './errors.ts'
export type { FollowOptions } from './event-feed.ts'
export type { Answer, CallOptions, OperationId } from './methods.ts'
export { verifyWebhook, WebhookVerificationError, type ReceivedWebhook, type TestEvent } from './webhooks.ts'

export interface ClientOptions {
  /** The address of the service, with its base path. */
  url: string
  /** An API key of an account. Only `createAccount` needs none. */
  apiKey?: string
  /** The time for each attempt of a request, with its answer. Default: 30 s. */
  timeoutMs?: number
  /** How often a request that failed is sent again. Default: 4. */
  retries?: number
  /** Header fields for every request. */
  headers?: Record<string, string>
  /** Replaces the global `fetch`. */
  fetch?: (request: Request) => Promise<Response>
}

/** A method for each operation of the document, by its operationId, and the feed. */
export type Client = { [Id in OperationId]: Method<Operations[Id]> } & {
  /**
   * Iterates over the events of the store as they happen, in order and without a gap. It reconnects when the connection
   * breaks, and ends when the signal is aborted or the loop ends.
   */
  followEvents: (options?: FollowOptions) => AsyncGenerator<Event, void, undefined>
}

interface Fetched { data?: unknown, error?: unknown, response: Response }

interface Session {
  request: (method: string, path: string, init: object) => Promise<Fetched>
  defaults: { timeoutMs: number, retries: number }
}

type Options = CallOptions & { headers?: Record<string, unknown> }

/** Creates a client of one account. */
export function createClient ({
  url, apiKey, timeoutMs = 30_000, retries = 4, headers, fetch
}: ClientOptions): Client {
  if (!URL.canParse(url)) throw new TypeError(`The url of a client must be absolute, such as http://127.0.0.1:3000: ${url}`)
  const { request } = createFetchClient({
    baseUrl: url,
    headers: { ...apiKey === undefined ? {} : { Authorization: `Bearer ${apiKey}` }, ...headers },
    ...fetch === undefined ? {} : { fetch }
  })
  const session = { request: request as Session['request'], defaults: { timeoutMs, retries } }
  const methods = Object.entries(operations).map(([id, facts]) =>
    [id, (...args: unknown[]) => call(session, id, facts, args)])
  return Object.assign(Object.fromEntries(methods), {
    followEvents: (options?: FollowOptions) => followEvents(
      async (position, signal) => await openStream(session, position, signal), options)
  }) as Client
}

/** Calls an operation. Its arguments are the id of the path, the query or the body, and the options. */
function call ({ request, defaults }: Session, id: string, facts: OperationFacts, args: unknown[]): Promise<unknown> {
  const rest = [...args]
  const pathId = facts.id === undefined ? undefined : rest.shift()
  const data = facts.sends === undefined ? undefined : rest.shift()
  const { headers, signal, timeoutMs, retries } = { ...defaults, ...rest.shift() as Options | undefined }
  const init = {
    params: {
      path: facts.id === undefined ? {} : { [facts.id]: pathId },
      query: facts.sends === 'query' ? data : {}
    },
    body: facts.sends === 'body' ? data : undefined,
    // The key stays the same in all attempts: the service answers a repetition without a second effect.
    headers: facts.isKeyed === true ? { 'Idempotency-Key': newKey(), ...headers } : headers
  }
  const isRepeatable = facts.method === 'get' || facts.isKeyed === true
  const send = async (search?: string): Promise<Received<unknown>> => {
    if (facts.id !== undefined && pathId === undefined) throw new TypeError(`${id} needs the ${facts.id}`)
    return await withRetries({ timeoutMs, retries, signal }, isRepeatable, async (signal) => {
      const querySerializer = search === undefined ? {} : { querySerializer: () => search }
      const { data, error, response } = await request(facts.method, facts.path, { ...init, ...querySerializer, signal })
      if (!response.ok && response.status !== 304) throw errorOf(error, response)
      return { data, response }
    })
  }
  return answerOf(send(), send)
}

async function openStream (
  { request }: Session, position: number | undefined, signal: AbortSignal
): Promise<OpenedStream> {
  const resume = position === undefined ? {} : { 'Last-Event-ID': position }
  const headers = { Accept: 'text/event-stream', ...resume }
  const { method, path } = operations.listEvents
  const { data, error, response } = await request(method, path, { headers, parseAs: 'stream', signal })
    .catch((cause: unknown) => { throw connectionErrorOf(cause) })
  if (!response.ok) throw errorOf(error, response)
  if (!(response.headers.get('content-type') ?? '').startsWith('text/event-stream')) {
    throw new ConnectionError('The answer is no event stream', { status: response.status })
  }
  const newest = response.headers.get('event-id')
  return { body: data as ReadableStream<Uint8Array>, newest: newest === null ? undefined : Number(newest) }
}

/** Returns a random `Idempotency-Key`. Browsers have `randomUUID` only in pages that come over HTTPS. */
function newKey (): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}
