import { hash, randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { timeText } from '../database/account-clocks.ts'
import { hideSecrets } from '../monitoring/secrets.ts'
import { announcesBody } from '../http/announces-body.ts'
import { keyOf } from '../http/idempotency.ts'
import { CapturedBody } from './captured-body.ts'
import { HASH_LENGTH, type EndedRequest } from './batches.ts'
import { outcomeOf } from './rules.ts'
import type { RecordedRequest } from './schemas.ts'

type HeaderField = RecordedRequest['fields'][number]
type AnswerFields = ReturnType<FastifyReply['getHeaders']>

/** A request whose response has ended, and which the journal does not have yet. */
export interface CapturedRequest {
  /** Memory that it takes. */
  bytes: number
  /** When its response ended, by `performance.now()`. */
  endedAt: number
  /** Returns what the journal records of it, which takes several times as long as to capture it. */
  describe: () => EndedRequest
}

/** Memory of a request besides what its client sent and received: objects, and the head of the response. */
const OVERHEAD_BYTES = 1_024

/**
 * Observes a request and its response, and calls `onEnd` when the response or its connection has ended.
 *
 * @param offsetMs how far the clock of the account is ahead
 */
export function captureRequest (
  request: FastifyRequest,
  reply: FastifyReply,
  { operation, offsetMs }: { operation: string, offsetMs: number },
  onEnd: (captured: CapturedRequest) => void
): void {
  const { elapsedTime } = reply
  const { method, url, raw: { socket, rawHeaders } } = request
  // A request of `inject` has another socket than its response, and no client that could leave.
  const isInjected = reply.raw.socket !== socket
  const began = performance.now() - elapsedTime
  // Rounded up, as the end of a response is rounded down: no pause looks shorter than its client made it.
  const startedMs = Math.ceil(Date.now() + 1 - elapsedTime)
  const body = announcesBody(request.raw) ? captureBody(request.raw, isInjected) : NO_BODY
  const response = captureResponse(reply.raw, method === 'HEAD')
  const hasLeft = reply.raw.destroyed
  const onClose = (): void => {
    const closingBegan = performance.now()
    const { raw } = reply
    const { answer } = response
    // What was not finished has ended now.
    const end = response.isFinished ? response.end : { at: closingBegan, ms: Date.now() }
    const status = raw.headersSent ? raw.statusCode : undefined
    const { fault } = request.hit ?? {}
    const answerFields = reply.getHeaders()
    const outcome = outcomeOf({
      effect: fault?.effect.type,
      status,
      isFinished: response.isFinished,
      isWhole: method === 'HEAD' || status === 204 || status === 304 ||
        answer.bytes >= Number(answerFields['content-length'] ?? Infinity),
      isClosedHere: isInjected || socket.writableEnded
    })
    onEnd(capturedOf(end.at, {
      facts: {
        operation,
        method,
        keyId: request.auth.key,
        run: runOf(request),
        status,
        outcome,
        idempotencyKey: keyOf(request),
        startedMs,
        endedMs: end.ms,
        retryAfterMs: status === undefined ? undefined : delayOf(answerFields['retry-after'])
      },
      url,
      at: startedMs - 1 + offsetMs,
      durationMs: Math.max(0, Math.round(end.at - began)),
      rawHeaders,
      body,
      isBodyMissing: !isInjected && (!request.raw.complete || (hasLeft && body !== NO_BODY)),
      answerFields,
      answer,
      faultId: fault?.id,
      problem: status === 400 ? reply.problem ?? { pointer: '', rule: reply.errorCode ?? 'bad_request' } : undefined
    }))
    request.server.admission.charge(request.auth.account, closingBegan)
  }
  // The client can leave while its API key is looked up.
  if (hasLeft) setImmediate(onClose)
  else reply.raw.on('close', onClose)
}

/** What remains of a request and its response. */
interface Pieces {
  facts: Omit<EndedRequest['facts'], 'path'>
  url: string
  /** When it arrived, by the clock of the account, in ms since 1970. */
  at: number
  durationMs: number
  rawHeaders: string[]
  body: CapturedBody
  /** Whether the request was answered, or its client left, before its body was here. The service parses no rest. */
  isBodyMissing: boolean
  answerFields: AnswerFields
  answer: CapturedBody
  faultId: number | undefined
  problem: RecordedRequest['problem']
}

/** A function of its own: what it returns must not hold the request and its response, which take ten times as much. */
function capturedOf (endedAt: number, pieces: Pieces): CapturedRequest {
  const { url, rawHeaders, body, answer } = pieces
  const head = rawHeaders.reduce((sum, text) => sum + text.length, url.length)
  return {
    bytes: OVERHEAD_BYTES + head + body.capturedBytes + answer.capturedBytes,
    endedAt,
    describe: () => describe(pieces)
  }
}

function describe (pieces: Pieces): EndedRequest {
  const { facts, url, body, answerFields, answer, faultId, problem } = pieces
  const { operation, method, keyId, run, status, outcome, idempotencyKey } = facts
  const path = hideSecrets(url)
  const text = body.text()
  const record: Omit<RecordedRequest, 'id'> = {
    at: timeText(pieces.at),
    durationMs: pieces.durationMs,
    operation,
    method,
    path,
    keyId,
    ...run === undefined ? {} : { run },
    fields: requestFields(pieces.rawHeaders),
    ...text === undefined ? {} : { body: text },
    ...body.isTruncated || pieces.isBodyMissing ? { bodyTruncated: true } : {},
    ...status === undefined ? {} : { status, ...answerOf(answerFields, answer) },
    outcome,
    ...faultId === undefined ? {} : { faultId },
    ...idempotencyKey === undefined ? {} : { idempotencyKey },
    ...answerFields['idempotency-replayed'] === 'true' ? { replayed: true } : {},
    ...problem === undefined ? {} : { problem }
  }
  const content = idempotencyKey === undefined
    ? `${method} ${url} ${body.bytes} ${body.hashOfRest()} ${text ?? ''}`
    : `key ${idempotencyKey}`
  // Without its body, nobody can tell which other requests are attempts of the same.
  const isUnique = pieces.isBodyMissing && idempotencyKey === undefined
  return {
    text: hideSecrets(JSON.stringify(record)),
    facts: { path, ...facts },
    attemptHash: hash('sha256', isUnique ? randomBytes(16) : content, 'base64url').slice(0, HASH_LENGTH)
  }
}

const NO_BODY = new CapturedBody()

/** Captures the body, also of a request that is answered before its body is read. */
function captureBody (raw: IncomingMessage, isInjected: boolean): CapturedBody {
  const body = new CapturedBody({ hashesRest: true })
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
  raw.on('finish', () => { capture.isFinished = true })
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

function answerOf (fields: AnswerFields, body: CapturedBody): Partial<RecordedRequest> {
  const answerFields: HeaderField[] = []
  for (const [name, value] of Object.entries(fields)) {
    if (Array.isArray(value)) answerFields.push(...value.map((item) => ({ name, value: item })))
    else if (value !== undefined) answerFields.push({ name, value: String(value) })
  }
  const text = body.text()
  return {
    answerFields,
    ...text === undefined ? {} : { answer: text },
    ...body.isTruncated ? { answerTruncated: true } : {}
  }
}

/** Fields with credentials of any kind. */
const CREDENTIALS = /^(authorization|proxy-authorization|cookie)$/i

/** A bearer credential of this service. Its secret is hidden with all others. */
const API_KEY = /^bearer +psk_[\w%+/=-]+$/i

function requestFields (rawHeaders: string[]): HeaderField[] {
  const fields: HeaderField[] = []
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    const value = rawHeaders[i + 1]!
    fields.push({ name, value: CREDENTIALS.test(name) && !API_KEY.test(value) ? '[hidden]' : value })
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
