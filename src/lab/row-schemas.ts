import { Type, type Static, type TObject, type TProperties } from '@sinclair/typebox'
import { CategorySchema } from '../categories/schemas.ts'
import { StringEnum } from '../http/common-schemas.ts'
import { MessageSchema } from '../messages/schemas.ts'
import { OrderSchema } from '../orders/schemas.ts'
import { InventoryItemSchema, PetSchema } from '../pets/schemas.ts'

/** Defines a record with its type, as a component with a name such as PetRow. */
function row<const Type extends string, Members extends TProperties> (
  type: Type, { properties }: TObject<Members>
): TObject<Members & { type: ReturnType<typeof StringEnum<Type>> }> {
  return Type.Object({ type: StringEnum([type]), ...properties }, {
    $id: `${type[0]!.toUpperCase()}${type.slice(1)}Row`, description: `A row of a store: type \`${type}\`.`
  })
}

const category = row('category', CategorySchema)
const pet = row('pet', Type.Required(PetSchema))
const inventory = row('inventory', InventoryItemSchema)
const order = row('order', OrderSchema)
const message = row('message', MessageSchema)

/** In the order of a file, parents before children. */
export const ROWS = [category, pet, inventory, order, message]

export type CategoryRow = Static<typeof category>
export type PetRow = Static<typeof pet>
export type InventoryRow = Static<typeof inventory>
export type OrderRow = Static<typeof order>
export type MessageRow = Static<typeof message>

export type StoreRow = CategoryRow | PetRow | InventoryRow | OrderRow | MessageRow

const typeOf = ({ properties: { type } }: TObject): string => (type as unknown as { enum: [string] }).enum[0]

export const StoreRowSchema = Type.Unsafe<StoreRow>({
  $id: 'StoreRow',
  description: 'A record of a store with its type.',
  type: 'object',
  discriminator: {
    propertyName: 'type',
    mapping: Object.fromEntries(ROWS.map((schema) => [typeOf(schema), `#/components/schemas/${schema.$id}`]))
  },
  oneOf: ROWS.map((schema) => ({ $ref: `${schema.$id}#` })),
  example: { type: 'pet', id: 7, name: 'Felix', categoryId: 2, status: 'available' }
})
