import type { OutgoingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { publicCode, ValidationFailed } from '../errors.ts'
import type { OperationTool } from './tools.ts'

/** The result of a tool: the response of the operation. */
export interface ToolResult {
  structuredContent: {
    status: number
    /** The code of the error, if the response is one. */
    code?: string
    /** The JSON value of the response, or its text if that is no JSON. */
    body?: unknown
    /** The fields of the response that a client acts on. */
    fields?: Record<string, string>
  }
  content: Array<{ type: 'text', text: string }>
  isError: boolean
  [member: string]: unknown
}

/** Thrown when a fault closed the connection of the request: the client of the tool gets no response, either. */
export class ConnectionLost extends Error {}

/** Fields of responses that clients act on. */
const FIELDS = [
  'deprecation', 'etag', 'event-id', 'idempotency-replayed', 'link', 'location', 'petstore-clock', 'petstore-fault',
  'ratelimit', 'ratelimit-policy', 'request-id', 'retry-after', 'sunset', 'x-ratelimit-limit', 'x-ratelimit-remaining',
  'x-ratelimit-reset'
]

/** Fields of the client's request that the operation gets, too. */
const PASSED_ON = ['authorization', 'host', 'petstore-run', 'user-agent']

/**
 * Calls an operation as a request of its own to this service, so that keys, limits, faults and the journal apply to it
 * as to any other.
 *
 * @param count counts a call that becomes no request, or one that does not count for the account
 */
export async function callTool (
  tool: OperationTool, args: Record<string, unknown>, request: FastifyRequest, count: () => Promise<void>
): Promise<ToolResult> {
  const body = jsonOf(args['body'])
  const problem = body === NO_JSON ? 'The argument "body" is nested too deeply' : problemOf(tool, args)
  if (problem !== undefined || tool.isOpen) await count()
  if (problem !== undefined) return refusal(problem)
  const query = new URLSearchParams()
  const headers: Record<string, string> = {}
  let { path } = tool
  for (const [argument, value] of Object.entries(args)) {
    const parameter = tool.parameters.get(argument)
    if (parameter === undefined) continue
    const texts = [value].flat().map(String)
    if (parameter.in === 'query') for (const text of texts) query.append(parameter.name, text)
    else if (parameter.in === 'header') headers[parameter.name] = texts.join()
    else path = path.replace(`{${parameter.name}}`, encodeURIComponent(texts.join()))
  }
  const url = query.size === 0 ? path : `${path}?${query.toString()}`
  const { statusCode, payload, headers: fields } =
    await sendOwn(request, { method: tool.method, url, headers, body })
  return resultOf(statusCode, payload, fields)
}

/** No JSON text. */
const NO_JSON = ''

/** Returns the JSON text of a value, or `NO_JSON` for one with more levels than the stack has room for. */
function jsonOf (value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch {
    return NO_JSON
  }
}

/** Returns what is wrong with the arguments before their values: the operation validates those. */
function problemOf (
  { tool: { name, inputSchema }, parameters }: OperationTool, args: Record<string, unknown>
): string | undefined {
  const { properties, required } = inputSchema
  for (const [argument, value] of Object.entries(args)) {
    if (!Object.hasOwn(properties, argument)) {
      return `"${argument}" is not an argument of ${name}. Its arguments are: ${Object.keys(properties).join(', ')}`
    }
    if (argument === 'body') continue
    const values = [value].flat()
    // Without the parameter, the operation would return all records.
    if (values.length === 0) return `The argument "${argument}" must not be an empty list`
    if (!values.every(isPlain)) return `The argument "${argument}" must be a line of text, a number or a boolean`
    // A URL has no other form of these: `%2E` is the same segment.
    if (parameters.get(argument)?.in === 'path' && ['', '.', '..'].includes(String(value))) {
      return `The argument "${argument}" must not be empty, "." or ".."`
    }
  }
  const missing = required.find((argument) => args[argument] === undefined)
  return missing === undefined ? undefined : `The argument "${missing}" is missing`
}

/** Whether a value can be a part of a path, a query or a header field. */
function isPlain (value: unknown): boolean {
  if (typeof value !== 'string') return typeof value === 'number' || typeof value === 'boolean'
  return value.isWellFormed() && !/[^\t\x20-\x7e\x80-\uffff]/.test(value)
}

function refusal (message: string): ToolResult {
  const { code, statusCode: status, message: text } = new ValidationFailed(message)
  return resultOf(status!, JSON.stringify({ code: publicCode({ code }), message: text, status }), {})
}

interface OwnResponse { statusCode: number, payload: string, headers: OutgoingHttpHeaders }

/** `body` is a JSON text. */
interface OwnRequest { method: string, url: string, headers?: Record<string, string>, body?: string | undefined }

/** Sends a request to this service, which ends when the client leaves. @throws ConnectionLost if it is not answered */
export async function sendOwn (
  request: FastifyRequest, { method, url, headers = {}, body }: OwnRequest
): Promise<OwnResponse> {
  const { server, ip, socket } = request
  if (socket.destroyed) throw new ConnectionLost()
  // Its error closes the response, also after all of it was read, which the option `signal` does not.
  const payload = new Readable({ autoDestroy: false, read () {} })
  if (body !== undefined) payload.push(body)
  payload.push(null)
  const leave = (): void => { payload.destroy(new Error('The client left')) }
  socket.once('close', leave)
  for (const name of PASSED_ON) {
    const value = request.headers[name]
    if (value !== undefined) headers[name] = String(value)
  }
  const response = await server.inject({
    method: method as 'GET',
    url: server.basePath + url,
    remoteAddress: ip,
    headers: { ...headers, ...body === undefined ? {} : fieldsOf(body) },
    payload
  }).catch((error: unknown) => { throw new ConnectionLost('', { cause: error }) })
    .finally(() => { socket.off('close', leave) })
  // One that is refused before its API key is read, such as by 414, does not count.
  if (response.headers.ratelimit !== undefined) request.isCounted = true
  return response
}

function fieldsOf (body: string): Record<string, string> {
  return { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) }
}

function resultOf (status: number, text: string, headers: OutgoingHttpHeaders): ToolResult {
  const body = text === '' ? undefined : parsed(text)
  const isError = status >= 400
  const { code } = (isError && typeof body === 'object' ? body ?? {} : {}) as { code?: string }
  const fields = Object.fromEntries(FIELDS.flatMap((name) =>
    headers[name] === undefined ? [] : [[name, headers[name].toString()]]))
  const structuredContent = {
    status,
    ...code === undefined ? {} : { code },
    ...body === undefined ? {} : { body },
    ...Object.keys(fields).length === 0 ? {} : { fields }
  }
  return { structuredContent, content: [{ type: 'text', text: JSON.stringify(structuredContent) }], isError }
}

/** A fault can make the body anything. */
function parsed (text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
