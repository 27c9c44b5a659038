import { Type, type TObject, type TSchema } from '@sinclair/typebox'
import { NO_ADDITIONAL_PROPERTIES, ref, StringEnum, Timestamp } from '../http/common-schemas.ts'
import type { EventDefinition } from '../resource.ts'

/**
 * Returns the components of the feed: a component for each type of event, such as PetCreatedEvent for `pet.created`,
 * the components of their data, their union Event, the enumeration EventType, and the message of a stream.
 */
export function eventSchemas (definitions: EventDefinition[]): TSchema[] {
  const dataSchemas = new Map<string, TObject>()
  const single = definitions.map(({ type, data: members, example }) => {
    const data = dataSchemaOf(dataSchemas, type, members)
    return Type.Object({
      // The union describes the events and these members once: here it would be 4 KB.
      id: Type.Integer({ format: 'int64', minimum: 1, example: 1 }),
      type: StringEnum([type]),
      timestamp: Timestamp(),
      data: ref(data)
    }, {
      $id: `${pascalCase(type)}Event`,
      ...example && { example: { id: 1, type, timestamp: '2026-11-21T10:00:00.000Z', data: example } }
    })
  })
  const any = Type.Unsafe<object>({
    $id: 'Event',
    description: 'A change of the store. `id` is its number: the events of an account are numbered 1, 2, 3 without ' +
      'gaps. `timestamp` is the time of the change. `data` contains whole records as they are after the change, so ' +
      'you can apply an event twice without harm.',
    oneOf: single.map(({ $id }) => ({ $ref: `${$id}#` })),
    discriminator: {
      propertyName: 'type',
      mapping: Object.fromEntries(definitions.map(({ type }, i) => [type, `#/components/schemas/${single[i]!.$id}`]))
    }
  })
  return [...dataSchemas.values(), ...single, any, eventType(definitions), EventStreamMessageSchema]
}

/**
 * Returns the component of an event's data. Types of one subject share a component if their members are the same; a
 * type with other members than the first one of its subject has a component of its own.
 */
function dataSchemaOf (known: Map<string, TObject>, type: string, members: Record<string, TSchema>): TObject {
  const [subject = ''] = type.split('.')
  const shared = `${pascalCase(subject)}EventData`
  const text = JSON.stringify(members)
  const first = known.get(shared)
  if (first !== undefined && JSON.stringify(first.properties) === text) return first
  const $id = first === undefined ? shared : `${pascalCase(type)}EventData`
  const description = `The records of ${first === undefined ? subject : type} events.`
  const schema = Type.Object(members, { $id, description })
  known.set($id, schema)
  return schema
}

function eventType (definitions: EventDefinition[]): TSchema {
  return StringEnum(definitions.map(({ type }) => type), {
    $id: 'EventType', description: 'A type of event.', example: 'message.created'
  })
}

/** A reference to the schema Event, which is built from the definitions of the resources. */
export const EventReference = Type.Unsafe<object>({ $ref: 'Event#' })

/** A reference to the enumeration EventType, which is built from the definitions of the resources. */
export const EventTypeReference = Type.Unsafe<string>({ $ref: 'EventType#' })

const EventStreamMessageSchema = Type.Object({
  id: Type.String({ pattern: '^[1-9][0-9]*$', description: 'The number of the event', example: '1' }),
  event: EventTypeReference,
  data: Type.String({
    description: 'The event as JSON text',
    example: '{"id":1,"type":"message.created","timestamp":"2026-11-21T10:00:00.000Z","data":{"message":{"id":' +
      '"msg_0000000001k7c2q9x4v0ayzr3m","message":"Hello","status":"queued","createdAt":"2026-11-21T10:00:00.000Z"}}}'
  })
}, {
  $id: 'EventStreamMessage',
  description: 'A message of the event stream, as an EventSource delivers it: `id`, `event` and `data` are its fields.'
})

export const EventQuery = Type.Object({
  after: Type.Optional(Type.Integer({
    format: 'int64', minimum: 0, description: 'Only events after this one. Default: all retained events', example: 0
  })),
  limit: Type.Optional(Type.Integer({
    minimum: 1, maximum: 100, default: 20, description: 'Maximum number of events to return', example: 20
  }))
}, NO_ADDITIONAL_PROPERTIES)

/** Converts a type of event, such as `pet.created`, to `PetCreated`. */
function pascalCase (type: string): string {
  return type.split('.').map((word) => word[0]!.toUpperCase() + word.slice(1)).join('')
}
