import type { Config } from '../config.ts'
import * as tables from '../generated/tables.ts'
import type { Resource } from '../resource.ts'
import * as errors from './errors.ts'
import { eventLog, type EventSubscribers } from './event-log.ts'
import { eventRoutes } from './routes.ts'
import { eventSchemas } from './schemas.ts'

/** The event feed: its schemas follow from the events that the resources define. */
export function events (
  { STREAMS_PER_ACCOUNT }: Config, resources: Resource[], subscribers: EventSubscribers
): Resource & { types: string[] } {
  const inTagOrder = resources.toSorted((a, b) => positionOf(a) - positionOf(b))
  const definitions = inTagOrder.flatMap((resource) => Object.values(resource.events ?? {}))
  return {
    name: 'events',
    tag: {
      name: 'events', group: 'Platform', position: 6, description: 'Everything that happened in the store, in order.'
    },
    tables: [tables.events],
    schemas: eventSchemas(definitions),
    errors,
    types: definitions.map(({ type }) => type),
    eventLog: eventLog(subscribers),
    routes: eventRoutes({ streamsPerAccount: STREAMS_PER_ACCOUNT })
  }
}

/** A resource without operations comes last. */
function positionOf ({ tag }: Resource): number {
  return tag?.position ?? Infinity
}
