import { Type, type TSchema } from '@sinclair/typebox'
import type { EventDefinition } from '../database/resource.ts'
import { NO_ADDITIONAL_PROPERTIES, Id, StringEnum, Timestamp } from '../http/common-schemas.ts'

/** Returns a component for each type of event: `pet.created` becomes PetCreatedEvent; and Event, any one of them. */
export function eventSchemas (definitions: EventDefinition[]): TSchema[] {
  const single = definitions.map(({ type, data, example }) => Type.Object({
    id: Id("Number of the event in the account's own gapless sequence", 1),
    type: StringEnum([type], { description: 'What happened', example: type }),
    timestamp: Timestamp('When it happened'),
    data: Type.Object(data, example && { example })
  }, { $id: nameOf(type), description: `An event of the type ${type}.` }))
  const any = Type.Unsafe<object>({
    $id: 'Event',
    description: 'A change of the store. It contains whole records as they are after the change, so applying an event twice does no harm.',
    oneOf: definitions.map(({ type }) => ({ $ref: `${nameOf(type)}#` })),
    discriminator: {
      propertyName: 'type',
      mapping: Object.fromEntries(definitions.map(({ type }) => [type, `#/components/schemas/${nameOf(type)}`]))
    }
  })
  return [...single, any]
}

/** The schema Event, which follows from the resources' definitions, as routes refer to it. */
export const EventReference = Type.Unsafe<object>({ $ref: 'Event#' })

export const EventQuery = Type.Object({
  after: Type.Optional(Type.Integer({
    format: 'int64', minimum: 0, description: 'Only events after this one. Default: all retained events', example: 0
  })),
  limit: Type.Optional(Type.Integer({
    minimum: 1, maximum: 100, default: 20, description: 'Maximum number of events to return', example: 20
  }))
}, NO_ADDITIONAL_PROPERTIES)

function nameOf (type: string): string {
  return type.split('.').map((word) => word[0]!.toUpperCase() + word.slice(1)).join('') + 'Event'
}
