import { hash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { timeText } from '../database/account-clocks.ts'
import { hideSecrets } from '../monitoring/secrets.ts'
import { keyOf } from '../http/idempotency.ts'
import { CapturedBody } from './captured-body.ts'
import type { EndedRequest } from './commands.ts'
import { outcomeOf } from './rules.ts'
import type { RecordedRequest } from './schemas.ts'

type HeaderField = RecordedRequest['fields'][number]

/**
 * Observes a request and its response, and calls `onEnd` when the response or its connection has ended.
 *
 * @param offsetMs how far the clock of the account is ahead
 */
export function recordRequest (
  request: FastifyRequest, reply: FastifyReply, offsetMs: number, onEnd: (ended: EndedRequest) => void
): void {
  const { elapsedTime } = reply
  const { socket } = request.raw
  // A request of `inject` has another socket than its response, and no client that could leave.
  const isInjected = reply.raw.socket !== socket
  const began = performance.now() - elapsedTime
  // Rounded up, as the end of a response is rounded down: no pause looks shorter than its client made it.
  const startedMs = Math.ceil(Date.now() + 1 - elapsedTime)
  const body = captureRequest(request.raw, isInjected)
  const response = captureResponse(reply.raw, request.method === 'HEAD')
  reply.raw.once('close', () => {
    const recordingBegan = performance.now()
    const { raw } = reply
    const { answer } = response
    // What was not finished has ended now.
    const end = response.isFinished ? response.end : { at: performance.now(), ms: Date.now() }
    const status = raw.headersSent ? raw.statusCode : undefined
    const { fault } = request.hit ?? {}
    const promised = Number(reply.getHeader('content-length') ?? Infinity)
    const outcome = outcomeOf({
      effect: fault?.effect.type,
      status,
      isFinished: response.isFinished,
      isWhole: request.method === 'HEAD' || answer.bytes >= promised,
      isClosedHere: isInjected || socket.writableEnded
    })
    const { method } = request
    const path = hideSecrets(request.originalUrl)
    const idempotencyKey = keyOf(request)
    const retryAfterMs = raw.headersSent ? delayOf(reply.getHeader('retry-after')) : undefined
    const facts = {
      operation: (request.routeOptions.schema as { operationId: string }).operationId,
      method,
      path,
      keyId: request.auth.key,
      run: runOf(request),
      status,
      outcome,
      idempotencyKey
    }
    const { operation, keyId, run } = facts
    const text = shownText(body)
    const record: Omit<RecordedRequest, 'id'> = {
      at: timeText(startedMs - 1 + offsetMs),
      durationMs: Math.max(0, Math.round(end.at - began)),
      operation,
      method,
      path,
      keyId,
      ...run === undefined ? {} : { run },
      fields: requestFields(request.raw),
      ...text === undefined ? {} : { body: text },
      ...body.isTruncated ? { bodyTruncated: true } : {},
      ...status === undefined ? {} : { status, ...answerOf(reply, answer) },
      outcome,
      ...fault === undefined ? {} : { faultId: fault.id },
      ...idempotencyKey === undefined ? {} : { idempotencyKey },
      ...reply.getHeader('idempotency-replayed') === 'true' ? { replayed: true } : {},
      ...status === 400 ? { problem: reply.problem ?? { pointer: '', rule: reply.errorCode ?? 'bad_request' } } : {}
    }
    onEnd({
      text: JSON.stringify(record),
      facts: { ...facts, startedMs, retryAfterMs },
      attemptKey: attemptKeyOf(request, idempotencyKey, body),
      isKeyed: idempotencyKey !== undefined,
      endedMs: end.ms
    })
    request.server.admission.charge(request.auth.account, recordingBegan)
  })
}

/** Captures the body, also of a request that is answered before its body is read. */
function captureRequest (raw: IncomingMessage, isInjected: boolean): CapturedBody {
  const body = new CapturedBody()
  const push = raw.push.bind(raw)
  raw.push = (part: string | Buffer | null) => {
    if (part !== null) body.add(part)
    return push(part)
  }
  // What has arrived already, while the API key was looked up.
  const early = raw.readableLength > 0 ? raw.read() as Buffer | null : null
  if (early !== null) {
    body.add(early)
    raw.unshift(early)
  }
  // Its body comes when it is asked for, and nobody asks for that of a request that is refused.
  if (isInjected) raw.read(0)
  return body
}

interface ResponseCapture {
  answer: CapturedBody
  /** When the last bytes were sent: by `performance.now()`, and in ms since 1970. */
  end: { at: number, ms: number }
  /** Whether the system took all bytes. The response of `inject` tells it by the event alone. */
  isFinished: boolean
}

/** Captures the bytes that are sent, after faults have changed them. */
function captureResponse (raw: ServerResponse, isHead: boolean): ResponseCapture {
  const capture: ResponseCapture = { answer: new CapturedBody(), end: { at: 0, ms: 0 }, isFinished: false }
  raw.once('finish', () => { capture.isFinished = true })
  // The `end` of a response of `inject` calls its `write`.
  let isSending = false
  const observe = <Send extends (...parameters: never[]) => unknown>(send: Send): Send =>
    ((...parameters) => {
      const [chunk] = parameters as unknown[]
      if (!isHead && !isSending && (typeof chunk === 'string' || chunk instanceof Uint8Array)) capture.answer.add(chunk)
      capture.end = { at: performance.now(), ms: Date.now() }
      isSending = true
      try {
        return send(...parameters)
      } finally {
        isSending = false
      }
    }) as Send
  raw.write = observe(raw.write.bind(raw))
  raw.end = observe(raw.end.bind(raw))
  return capture
}

function shownText (body: CapturedBody): string | undefined {
  const text = body.text()
  return text === undefined ? undefined : hideSecrets(text)
}

function answerOf (reply: FastifyReply, body: CapturedBody): Partial<RecordedRequest> {
  const answerFields = Object.entries(reply.getHeaders()).flatMap(([name, value]) =>
    [value ?? []].flat().map((item) => ({ name, value: hideSecrets(String(item)) })))
  const answer = shownText(body)
  return {
    answerFields,
    ...answer === undefined ? {} : { answer },
    ...body.isTruncated ? { answerTruncated: true } : {}
  }
}

/** Fields with credentials of any kind. */
const CREDENTIALS = /^(authorization|proxy-authorization|cookie)$/i

/** A bearer credential of this service, whose secret was hidden. */
const HIDDEN_KEY = /^bearer +psk_\[hidden\]$/i

function requestFields ({ rawHeaders }: IncomingMessage): HeaderField[] {
  const fields: HeaderField[] = []
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    const value = hideSecrets(rawHeaders[i + 1]!)
    fields.push({ name, value: CREDENTIALS.test(name) && !HIDDEN_KEY.test(value) ? '[hidden]' : value })
  }
  return fields
}

/** A name of 1 to 255 visible characters and spaces. Anything else is no name. */
const RUN = /^[\x20-\x7e]{1,255}$/

function runOf ({ headers }: FastifyRequest): string | undefined {
  const run = headers['petstore-run']
  return typeof run === 'string' && RUN.test(run) ? run : undefined
}

/** Returns what `Retry-After` asks for, as seconds or as a date (RFC 9110 section 10.2.3). */
function delayOf (field: number | string | string[] | undefined): number | undefined {
  if (field === undefined) return undefined
  const text = field.toString()
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now()
  return Number.isNaN(ms) ? undefined : Math.max(0, ms)
}

function attemptKeyOf (
  { method, originalUrl }: FastifyRequest, key: string | undefined, body: CapturedBody
): string {
  const content = key === undefined ? `${method} ${originalUrl} ${body.bytes} ${body.text() ?? ''}` : `key ${key}`
  return hash('sha256', content, 'base64url').slice(0, 22)
}
