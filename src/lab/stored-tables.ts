import { Type, type Static, type TObject, type TProperties } from '@sinclair/typebox'
import { CategorySchema } from '../categories/schemas.ts'
import { idOf, type ColumnType, type Table } from '../database/table.ts'
import * as tables from '../generated/tables.ts'
import { NumberOf, StringEnum } from '../http/common-schemas.ts'
import { MessageSchema } from '../messages/schemas.ts'
import { NewOrderSchema, OrderSchema } from '../orders/schemas.ts'
import { InventoryItemSchema, PetSchema } from '../pets/schemas.ts'

export const StoreCountsSchema = Type.Object({
  categories: NumberOf('categories', 5),
  pets: NumberOf('pets', 20),
  inventory: NumberOf('inventory entries', 20),
  orders: NumberOf('orders', 6),
  messages: NumberOf('messages', 0)
}, { $id: 'StoreCounts', description: 'The records of a store, counted.' })
export type StoreCounts = Static<typeof StoreCountsSchema>

/** A table of the store: snapshots, files, hashes and differences have its rows. */
export interface StoredTable<Row extends object = object> {
  name: string
  table: Table
  /** The type of its rows in a file. */
  type: string
  /** The member of `StoreCounts`, and the field of the model of snapshots. */
  counted: keyof StoreCounts
  /** The schema of its rows in a file: the members of the record with `type`, required if their columns are. */
  schema: TObject
  /** The member by which rows of other tables name its rows. */
  idMember: string
  /** The members that name rows of other tables, each with the name of that table. */
  references: Array<[member: string, parent: string]>
  /** The column of the id. */
  id: string
  /** The columns beside the account and the id. */
  columns: Record<string, ColumnType>
  /** Columns that a restore computes, as SQL that reads the row `x` of the snapshot. */
  computed: Record<string, string>
  /** Narrower schemas of members in an imported file. */
  imported: TProperties
  /** Members that the service sets, and which are no part of what a store has. */
  setByService: readonly string[]
  /** Gives `Row` its place in the type. It has no value. */
  row?: Row
}

/** What does not follow from the model and the schema of the record. */
interface Exceptions extends Partial<Pick<StoredTable, 'computed' | 'imported' | 'setByService'>> {
  /** Columns that only the database writes otherwise. */
  triggered?: StoredTable['columns']
}

/** The largest stock of a file: all orders of a store that are cancelled do not lift it above 2^53. */
const MAX_STOCK = 2 ** 52 - 1

/** The tables of a store, parents before children, which is also the order of a file. */
export const STORED_TABLES = [
  stored('category', 'categories', tables.categories, CategorySchema),
  // A trigger counts only what clients count.
  stored('pet', 'pets', tables.pets, PetSchema, { triggered: { counted: 'boolean' } }),
  stored('inventory', 'inventory', tables.inventoryItems, InventoryItemSchema, {
    imported: { quantity: Type.Integer({ minimum: 0, maximum: MAX_STOCK }) }
  }),
  stored('order', 'orders', tables.orders, OrderSchema, {
    imported: { quantity: Type.Required(NewOrderSchema).properties.quantity }
  }),
  stored('message', 'messages', tables.messages, MessageSchema, {
    computed: {
      waiting: "(SELECT count(*) FROM deliveries d WHERE d.message_position = x.row_id AND d.state = 'waiting')"
    },
    setByService: ['createdAt']
  })
]

export type StoreRow = NonNullable<typeof STORED_TABLES[number]['row']>

/** Describes a table by the type of its rows, its name in `StoreCounts`, and the schema of its records. */
function stored<const Name extends string, Schema extends TObject> (
  type: Name, counted: keyof StoreCounts, table: Table, { properties }: Schema,
  { triggered = {}, computed = {}, imported = {}, setByService = [] }: Exceptions = {}
): StoredTable<{ type: Name } & Static<Schema>> {
  const columns = Object.entries(table.columns)
    .filter(([field, { name }]) => ![table.id, 'accountId', 'versionFloor'].includes(field) && !(name in computed))
    .map(([, { name, type }]) => [name, type] as const)
  const members = { type: StringEnum([type]), ...properties }
  return {
    name: table.name,
    table,
    type,
    counted,
    schema: {
      ...Type.Object(members, {
        $id: `${type[0]!.toUpperCase()}${type.slice(1)}Row`, description: `A row of a store: type \`${type}\`.`
      }),
      required: Object.keys(members).filter((member) => table.columns[member]?.isNullable !== true)
    },
    idMember: 'id' in properties ? 'id' : table.id,
    references: Object.entries(table.columns).flatMap(([field, { references }]): StoredTable['references'] =>
      references === undefined ? [] : [[field, references]]),
    id: idOf(table),
    columns: { ...Object.fromEntries(columns), ...triggered },
    computed,
    imported,
    setByService
  }
}

export const StoreRowSchema = Type.Unsafe<StoreRow>({
  $id: 'StoreRow',
  description: 'A record of a store with its type.',
  type: 'object',
  discriminator: {
    propertyName: 'type',
    mapping: Object.fromEntries(STORED_TABLES.map(({ type, schema }) => [type, `#/components/schemas/${schema.$id}`]))
  },
  oneOf: STORED_TABLES.map(({ schema }) => ({ $ref: `${schema.$id}#` })),
  example: { type: 'pet', id: 7, name: 'Felix', categoryId: 2, status: 'available' }
})

/** Returns the counts of a store, by what each table has. */
export function countsOf (count: (table: StoredTable) => number): StoreCounts {
  return Object.fromEntries(STORED_TABLES.map((stored) => [stored.counted, count(stored)])) as StoreCounts
}
