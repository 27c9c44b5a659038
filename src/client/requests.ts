import { records as schemas } from '../generated/client/operations.ts'
import type { Received } from './answer.ts'
import { ConnectionError, connectionErrorOf, errorOf, RedirectError, type PetstoreError } from './errors.ts'
import type { HeaderFields } from './header-fields.ts'
import type { OperationFacts, RecordFacts } from './methods.ts'

export interface Outgoing {
  method: string
  url: string
  fields: HeaderFields
  body: string | undefined
}

/** Sends a request. Each implementation of `fetch` has this form. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>

const REDIRECTS = [301, 302, 303, 307, 308]

/** Redirects of one request that the client follows. */
const MAX_REDIRECTS = 5

/**
 * Sends a request and returns the response, whose body is still to be read.
 *
 * @throws {ConnectionError} if there is no response, or if it redirects to where the client does not go
 */
export async function fetchResponse (fetch: Fetch, request: Outgoing, signal: AbortSignal): Promise<Response> {
  const { method, fields, body } = request
  const init = { method, headers: Object.fromEntries(fields), redirect: 'manual', signal } as const
  let { url } = request
  for (let count = 0; ; count++) {
    const response = await fetch(url, body === undefined ? init : { ...init, body })
      .catch((cause: unknown) => { throw connectionErrorOf(cause) })
    if (!isRedirect(response, method)) return response
    response.body?.cancel().catch(() => {})
    const target = targetOf(response, url)
    // A redirected write can become a read (RFC 9110 section 15.4), and another origin must not get the key.
    const mayFollow = method === 'GET' && [307, 308].includes(response.status) && count < MAX_REDIRECTS
    if (!mayFollow || target === undefined || new URL(target).origin !== new URL(url).origin) {
      throw new RedirectError(response.status, target)
    }
    url = target
  }
}

/** Tells whether a response redirects, or comes from a redirect of a write that `fetch` followed all the same. */
function isRedirect ({ status, type, redirected }: Response, method: string): boolean {
  return REDIRECTS.includes(status) || type === 'opaqueredirect' || (redirected && method !== 'GET')
}

/** Returns the address that a redirect names. Browsers hide it. */
function targetOf ({ headers, redirected, url: last }: Response, url: string): string | undefined {
  const location = redirected ? last : headers.get('location') ?? ''
  return location !== '' && URL.canParse(location, url) ? new URL(location, url).href : undefined
}

/**
 * Reads an answer, which must be the documented success of its operation.
 *
 * @throws {PetstoreError} for an error of the service
 * @throws {ConnectionError} for any other answer
 */
export async function readAnswer (
  response: Response, { fields }: Outgoing, { success }: OperationFacts
): Promise<Received<unknown>> {
  const { status } = response
  if (status >= 400) throw await readError(response)
  const text = await textOf(response)
  if (status === 304 && fields.has('if-none-match')) return { data: undefined, response }
  const isText = success.content === 'text'
  const data = isText ? text : parse(text)
  // A part of the answer, or the page of a gateway. The next attempt can bring the answer.
  if (data === undefined && text !== '') throw connectionErrorOf('it is not JSON')
  if (status !== success.status) throw undocumented(status, `the operation answers ${success.status}`)
  if (success.content === undefined) return { data: undefined, response }
  if (isText) return { data, response }
  const records = success.content === 'list' ? data : [data]
  if (!Array.isArray(records)) throw undocumented(status, 'it must be a list')
  for (const record of records as unknown[]) {
    if (!isRecord(record)) throw undocumented(status, 'it must have records')
    const flaw = flawOf(record, (schemas as Record<string, RecordFacts>)[success.record!])
    if (flaw !== undefined) throw undocumented(status, flaw)
  }
  return { data, response }
}

/** Returns the error of an answer that is not the documented success of its operation. */
export async function readError (response: Response): Promise<PetstoreError | ConnectionError> {
  const { status } = response
  if (status < 400) return undocumented(status, 'it is no error, and not the success of the operation')
  return errorOf(parse(await textOf(response)), response)
}

async function textOf (response: Response): Promise<string> {
  return await response.text().catch((cause: unknown) => { throw connectionErrorOf(cause) })
}

function undocumented (status: number, reason: string): ConnectionError {
  return new ConnectionError(`The response with status ${status} is not as the service documents it: ${reason}`, { status })
}

function isRecord (value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns how a record differs from its schema. It may have more members: the service can grow. */
function flawOf (record: Record<string, unknown>, schema: RecordFacts | undefined): string | undefined {
  const missing = schema?.required.find((name) => !Object.hasOwn(record, name))
  if (missing !== undefined) return `it has no ${missing}`
  const [name, type] = Object.entries(schema?.types ?? {}).find(([name, type]) =>
    Object.hasOwn(record, name) && !isOfType(record[name], type)) ?? []
  return name === undefined ? undefined : `its ${name} is no ${type}`
}

function isOfType (value: unknown, type: string): boolean {
  const actual = Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value
  return type === actual || (type === 'integer' && Number.isInteger(value))
}

/** Returns the value of a JSON text, or `undefined`. */
function parse (text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
