import type { Readable } from 'node:stream'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { emptyStream, sendPage } from '../http/responses.ts'
import { EventsExpired, Unauthorized, ValidationFailed } from '../errors.ts'
import { ref } from '../http/common-schemas.ts'
import { createEventStreams } from './event-stream.ts'
import { resolveStartPosition } from './rules.ts'
import { EventQuery, EventSchema } from './schemas.ts'
import { listEvents, type EventPage } from './queries.ts'

export const eventRoutes: FastifyPluginAsyncTypebox = async function eventRoutes (app) {
  const feed = createEventStreams(app.read, app.log)
  app.onNews(({ accounts }) => { accounts.forEach(feed.wake) })
  app.addHook('preClose', async () => { feed.close() })

  app.get('/events', {
    schema: {
      operationId: 'listEvents',
      tags: ['events'],
      summary: 'List or follow events',
      description: [
        'Every change of the store as an event, in order. With `Accept: text/event-stream` the answer stays open and brings new events as they happen; a stream that breaks is resumed by `Last-Event-ID`, without a loss.',
        'To mirror a store: read `Event-Id` here, walk the lists, then follow from that number.'
      ].join('\n\n'),
      'x-stability': 'experimental',
      querystring: EventQuery,
      response: { 200: Type.Array(ref(EventSchema)) }
    },
    config: { errors: [EventsExpired], stream: true },
    // Fields are judged before the query.
    preValidation: async (request) => { if (wantsStream(request)) lastEventId(request) },
    // Its JSON comes from the database as text; a serializer for the union of all events would never be used.
    serializerCompiler: () => (data) => JSON.stringify(data)
  }, async (request, reply) => {
    const { auth, query: { after, limit = 20 } } = request
    const streaming = wantsStream(request)
    const from = (streaming ? lastEventId(request) : undefined) ?? after
    const stretch = await listEvents(app.read, auth.account, from ?? 0, streaming ? 1 : limit)
    if (stretch === undefined) throw new Unauthorized('The account of this API key was deleted')
    const position = resolveStartPosition(stretch, from)
    reply.header('event-id', stretch.newest)
    if (position === 'expired') throw new EventsExpired(held(stretch))

    if (!streaming) {
      const next = stretch.last < stretch.newest && stretch.text !== '' ? stretch.last : null
      return sendPage(request, reply, { records: `[${stretch.text}]`, next }, { parameter: 'after' })
    }
    reply.header('content-type', 'text/event-stream; charset=utf-8')
    // Proxies that gather answers would hold events back.
    reply.header('x-accel-buffering', 'no')
    const { socket } = request.raw
    return sendStream(reply, request.method === 'HEAD' ? emptyStream() : feed.follow(auth, position, () => socket.writableLength))
  })
}

/** The other kind of answer, of which the route's response schema knows nothing. */
function sendStream (reply: FastifyReply, stream: Readable): FastifyReply {
  return reply.send(stream)
}

function wantsStream ({ headers: { accept = '' } }: FastifyRequest): boolean {
  return accept.split(',').some((range) => /^\s*text\/event-stream\s*(;|$)/i.test(range))
}

/** What a client that resumes has seen last; an empty field is none. */
function lastEventId ({ headers }: FastifyRequest): number | undefined {
  const field = headers['last-event-id']
  if (field === undefined || field === '') return undefined
  if (typeof field !== 'string' || !/^(0|[1-9][0-9]{0,18})$/.test(field)) throw new ValidationFailed('Last-Event-ID must be the number of an event')
  // None has a number that a double does not hold.
  return Math.min(Number(field), Number.MAX_SAFE_INTEGER)
}

function held ({ oldest, newest }: EventPage): string {
  return oldest === undefined ? `none is held; the newest was ${newest}` : `the oldest that is held is ${oldest}`
}
