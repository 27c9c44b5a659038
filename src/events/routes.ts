import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { addVary, wantsEventStream } from '../http/content-negotiation.ts'
import { conditionsOf, isNotModified } from '../http/conditional-requests.ts'
import { emptyStream, sendPage } from '../http/responses.ts'
import { EventsExpired, StreamLimitReached } from './errors.ts'
import { Unauthorized } from '../errors.ts'
import { createEventStreams } from './event-stream.ts'
import { describeStored, resolveStartPosition } from './rules.ts'
import { EventQuery, EventReference } from './schemas.ts'
import { listEvents } from './queries.ts'
import { lastEventId, sendFollowing, sendStream, sendStreamNotModified } from './stream-responses.ts'

export interface EventOptions {
  /** Maximum number of event streams of an account. */
  streamsPerAccount: number
}

export function eventRoutes ({ streamsPerAccount }: EventOptions): FastifyPluginAsyncTypebox {
  return async function eventRoutes (app) {
    const feed = createEventStreams(app.read, app.log, {}, app.clocks)
    app.onChange(({ events: accounts = [] }) => { accounts.forEach(feed.wake) })
    app.addHook('preClose', async () => { feed.close() })

    app.get('/events', {
      schema: {
        operationId: 'listEvents',
        tags: ['events'],
        summary: 'List or follow events',
        description: [
          'Lists the changes of pets, categories, stock, orders and messages as events, in order. With ' +
            '`Accept: text/event-stream` the response stays open and sends new events as they happen. To resume a ' +
            'broken stream without losing an event, send `Last-Event-ID`; it takes precedence over `after`.',
          'To mirror a store, read `Event-Id` here, read all pages of the lists, and then follow from that number.'
        ].join('\n\n'),
        'x-stability': 'experimental',
        querystring: EventQuery,
        response: { 200: Type.Array(EventReference) }
      },
      config: { errors: [StreamLimitReached, EventsExpired], stream: true },
      // The contract validates headers before query parameters.
      preValidation: async (request) => { lastEventId(request) },
      // The database returns JSON as text: a serializer for the union of all events would never run.
      serializerCompiler: () => (data) => JSON.stringify(data)
    }, async (request, reply) => {
      const { auth, query: { after, limit = 20 } } = request
      const isStream = wantsEventStream(request)
      addVary(reply, 'Accept')
      const from = lastEventId(request) ?? after
      const page = await listEvents(app.read, auth.account, from ?? 0, isStream ? 1 : limit)
      if (page === undefined) throw new Unauthorized('The account of this API key was deleted')
      const position = resolveStartPosition(page, from)
      reply.header('event-id', page.newest)
      if (position === 'expired') throw new EventsExpired(describeStored(page))
      if (!isStream) {
        const next = page.last < page.newest && page.text !== '' ? page.last : null
        return sendPage(request, reply, { records: `[${page.text}]`, next }, { parameter: 'after' })
      }
      // A stream has no entity tag, so only `If-None-Match: *` is satisfied.
      if (isNotModified(conditionsOf(request))) return sendStreamNotModified(reply)
      if (request.method === 'HEAD') return sendStream(reply, emptyStream())
      if (feed.countOf(auth.account) >= streamsPerAccount) {
        reply.removeHeader('event-id')
        throw new StreamLimitReached(streamsPerAccount)
      }
      return sendFollowing(reply, (unsentBytes) => feed.follow(auth, position, unsentBytes))
    })
  }
}
