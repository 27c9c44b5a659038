import { Type, type TSchema } from '@sinclair/typebox'
import type { EventDefinition } from '../database/resource.ts'
import { NO_ADDITIONAL_PROPERTIES, Id, StringEnum, Timestamp } from '../http/common-schemas.ts'

/** Returns a component for each type of event, such as PetCreatedEvent for `pet.created`, and their union Event. */
export function eventSchemas (definitions: EventDefinition[]): TSchema[] {
  const single = definitions.map(({ type, data, example }) => Type.Object({
    id: Id("Number of the event in the account's own gapless sequence", 1),
    type: StringEnum([type], { description: 'Type of the event', example: type }),
    timestamp: Timestamp('Time of the change'),
    data: Type.Object(data, example && { example })
  }, { $id: nameOf(type), description: `An event of the type ${type}.` }))
  const any = Type.Unsafe<object>({
    $id: 'Event',
    description: 'A change of the store. It contains whole records as they are after the change, so you can apply an ' +
      'event twice without harm.',
    oneOf: definitions.map(({ type }) => ({ $ref: `${nameOf(type)}#` })),
    discriminator: {
      propertyName: 'type',
      mapping: Object.fromEntries(definitions.map(({ type }) => [type, `#/components/schemas/${nameOf(type)}`]))
    }
  })
  return [...single, any]
}

/** A reference to the schema Event, which is built from the definitions of the resources. */
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
