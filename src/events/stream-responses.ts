import type { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ValidationFailed, withProblem } from '../errors.ts'
import { emptyStream } from '../http/responses.ts'

/** Sends the representation that the route's response schema does not describe. */
export function sendStream (reply: FastifyReply, stream: Readable): FastifyReply {
  reply.header('content-type', 'text/event-stream; charset=utf-8')
  // Proxies that buffer responses would delay events.
  reply.header('x-accel-buffering', 'no')
  return reply.send(stream)
}

/** Sends 304, whose body the types do not allow. */
export function sendStreamNotModified (reply: FastifyReply): FastifyReply {
  return reply.code(304).send(emptyStream())
}

/** Returns the number of the last event that a resuming client has seen; an empty field counts as absent. */
export function lastEventId ({ headers }: FastifyRequest): number | undefined {
  const field = headers['last-event-id']
  if (field === undefined || field === '') return undefined
  if (typeof field !== 'string' || !/^(0|[1-9][0-9]{0,18})$/.test(field)) {
    throw withProblem(
      new ValidationFailed('Last-Event-ID must be the number of an event'), '/headers/Last-Event-ID', 'pattern')
  }
  // Numbers of events fit a double: a larger number is beyond the newest event anyway.
  return Math.min(Number(field), Number.MAX_SAFE_INTEGER)
}
