import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { publicCode } from '../errors.ts'
import { corrupted } from './corruption.ts'
import { INJECTED } from './errors.ts'
import { documentedSchema } from './documented-schemas.ts'
import type { HeldBytes } from './held-bytes.ts'
import type { Fault } from './schemas.ts'
import { closeAfterWrites, holdBack, throttle } from './streams.ts'

/** In place of an answer: the connection is to be closed without a byte. */
export const ENDED = Symbol('ended')

/** Header fields that describe the body which another one replaces. */
const FIELDS_OF_BODY = [
  'content-length', 'content-type', 'etag', 'location', 'link', 'idempotency-replayed', 'event-id'
]

/** A slow body arrives within this time, however slow the fault makes it: it waits in memory meanwhile. */
const MAX_TRICKLE_SECONDS = 60

/** Applies the effect of a fault to an answer, and returns the payload to send. */
export async function changeAnswer (
  request: FastifyRequest, reply: FastifyReply, payload: unknown, { effect, id }: Fault, held: HeldBytes
): Promise<unknown> {
  switch (effect.type) {
    case 'delay': {
      const release = held.reserve(request.auth.account, bytesOf(payload))
      if (release === undefined) return skip(reply, id, payload)
      await holdBack(effect.ms, reply.raw)
      release()
      return payload
    }
    case 'reset':
    case 'lose_answer':
      if (payload instanceof Readable) payload.destroy()
      return ENDED
    case 'replace_answer':
      if (payload instanceof Readable) payload.destroy()
      return replaceAnswer(reply, effect.status, id)
    case 'truncate':
      return await truncate(request, reply, payload, effect.bytes)
    case 'trickle':
      return trickle(request, reply, payload, effect.bytesPerSecond, held) ?? skip(reply, id, payload)
    case 'corrupt': {
      const body = textOf(request, payload)
      const changed = body && corrupted(body, effect.how, documentedSchema(request, reply.statusCode))
      return changed ?? skip(reply, id, payload)
    }
    default:
      return payload
  }
}

/** Says on the answer that the fault was counted and has no effect. */
export function skip (reply: FastifyReply, id: number, payload: unknown): unknown {
  reply.header('petstore-fault', `${id}; skipped`)
  return payload
}

/** Returns the body of an answer that has one. */
function textOf ({ method }: FastifyRequest, payload: unknown): string | undefined {
  return typeof payload === 'string' && payload !== '' && method !== 'HEAD' ? payload : undefined
}

function bytesOf (payload: unknown): number {
  return typeof payload === 'string' ? Buffer.byteLength(payload) : 0
}

function replaceAnswer (reply: FastifyReply, status: number, id: number): string {
  for (const name of FIELDS_OF_BODY) reply.removeHeader(name)
  const error = new INJECTED[status]!(id)
  reply.errorCode = publicCode(error)
  reply.code(status).header('content-type', 'application/json; charset=utf-8').header('cache-control', 'no-store')
  if (status === 503) reply.header('retry-after', 1)
  return JSON.stringify({ code: reply.errorCode, message: error.message, status })
}

/** Sends the head, which promises the whole body, and a part of the body. Then closes the connection. */
async function truncate (
  request: FastifyRequest, reply: FastifyReply, payload: unknown, bytes: number
): Promise<unknown> {
  const body = request.method !== 'HEAD' && typeof payload === 'string' ? Buffer.from(payload) : Buffer.alloc(0)
  if (payload instanceof Readable) payload.destroy()
  else if (typeof payload === 'string') reply.header('content-length', Buffer.byteLength(payload))
  reply.hijack()
  const { raw } = reply
  raw.writeHead(reply.statusCode, reply.getHeaders() as Record<string, string>)
  raw.flushHeaders()
  const part = body.subarray(0, bytes)
  if (part.length > 0) await new Promise((resolve) => { raw.write(part, resolve) })
  closeAfterWrites(raw.socket!)
  // Fastify sends nothing more.
  return await new Promise(() => {})
}

/** @returns `undefined` when there is no body, or no room for it */
function trickle (
  request: FastifyRequest, reply: FastifyReply, payload: unknown, bytesPerSecond: number, held: HeldBytes
): Readable | undefined {
  const body = textOf(request, payload)
  const release = body && held.reserve(request.auth.account, bytesOf(body))
  if (!body || !release) return undefined
  const bytes = Buffer.from(body)
  reply.header('content-length', bytes.length)
  const speed = Math.max(bytesPerSecond, bytes.length / MAX_TRICKLE_SECONDS)
  return throttle(Readable.from([bytes]), speed).once('close', release)
}
