import type { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ValidationFailed, withProblem } from '../errors.ts'
import { emptyStream } from '../http/responses.ts'
import type { EventStream, UnsentBytes } from './followers.ts'

/** Sends the representation that the route's response schema does not describe. */
export function sendStream (reply: FastifyReply, stream: Readable): FastifyReply {
  reply.header('content-type', 'text/event-stream; charset=utf-8')
  // Proxies that buffer responses would delay events.
  reply.header('x-accel-buffering', 'no')
  return reply.send(stream)
}

/**
 * Sends the stream of a follower. While it follows, it has limits of its own in place of the time-out of its socket.
 * Once it has ended, what its client has not read is as the rest of any response.
 *
 * @param follow opens the stream of a client whose socket has so many unsent bytes
 */
export function sendFollowing (reply: FastifyReply, follow: (unsentBytes: UnsentBytes) => EventStream): FastifyReply {
  const { socket } = reply.raw
  const stream = follow(() => socket!.writableLength)
  // The socket of `inject` has no time-out.
  if (socket !== null && 'setTimeout' in socket) {
    socket.setTimeout(0)
    stream.once('ending', () => { socket.setTimeout(reply.server.server.timeout) })
  }
  return sendStream(reply, stream)
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
      new ValidationFailed('Last-Event-ID must be an id that the stream has sent'), '/headers/Last-Event-ID', 'pattern')
  }
  // Numbers of events fit a double: a larger number is beyond the newest event anyway.
  return Math.min(Number(field), Number.MAX_SAFE_INTEGER)
}
