import type { Static, TObject, TSchema } from '@sinclair/typebox'
import type { NewEvent } from '../database/unit-of-work/success.ts'
import type { EventDefinition } from '../resource.ts'

/** The members of an event's data, by their schemas. */
type Members = Record<string, TSchema>

type DataOf<M extends Members> = Static<TObject<M>>

/** Creates events of one type; also the definition of that type. */
export type EventFactory<M extends Members> = EventDefinition & ((data: DataOf<M>) => NewEvent)

/**
 * Defines the types of events of a subject: `defineEvents('pet', { created: { pet: PetSchema } })` makes
 * `created({ pet })` create an event `pet.created`. Data holds whole records, as they are after the change.
 *
 * @param examples the data of examples, where the examples of the schemas do not fit
 */
export function defineEvents<Definitions extends Record<string, Members>> (
  subject: string, definitions: Definitions, examples: { [Name in keyof Definitions]?: object } = {}
): { [Name in keyof Definitions]: EventFactory<Definitions[Name]> } {
  const factories = Object.entries(definitions).map(([name, members]) => {
    const type = `${subject}.${name}`
    const definition: EventDefinition = { type, data: members, example: examples[name] }
    return [name, Object.assign((data: object): NewEvent => ({ type, data }), definition)]
  })
  return Object.fromEntries(factories) as { [Name in keyof Definitions]: EventFactory<Definitions[Name]> }
}
