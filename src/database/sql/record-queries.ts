import type { Static, TObject } from '@sinclair/typebox'
import type { Dialect } from '../dialect.ts'
import { etagOf, isStructured } from '../record.ts'
import type { Query, Read } from '../reads/query.ts'
import { columnOf, inputType, type ColumnType, type Table } from '../table.ts'
import {
  boolean, enumText, integer, json, jsonObject, optional, text, time, type Member, type SerializedRecord
} from './json-object.ts'
import {
  pageQuery, type Filter, type Index, type ListDefinition, type Page, type PageRequest
} from './keyset-pagination.ts'

export type FindRecord<Id> = (read: Read, account: number, id: Id) => Promise<SerializedRecord | undefined>
export type ListRecords = (read: Read, account: number, page: PageRequest) => Promise<Page>

/** The alias of a table in the queries of its records. */
const ALIAS = 'r'

/**
 * Returns the members of a table's records in JSON. Each field of the schema is the model's field of that name; a text
 * of which the schema makes an array or an object contains JSON.
 *
 * @param computed the members that are not the value of a field
 */
export function membersOf<Schema extends TObject> (
  table: Table, { properties }: Schema, alias = ALIAS, computed: Partial<Record<keyof Static<Schema>, Member>> = {}
): Record<string, Member> {
  return Object.fromEntries(Object.entries(properties).map(([field, schema]) => {
    const known = computed[field]
    if (known !== undefined) return [field, known]
    const sql = `${alias}.${columnOf(table, field)}`
    const column = table.columns[field]!
    const member = isStructured(schema) ? json(sql) : memberOf(column.type, sql)
    return [field, column.isNullable ? optional(member) : member]
  }))
}

/** Returns a function that builds the JSON text of a table's records over a row `r`. */
const recordOf = (table: Table, schema: TObject) => (dialect: Dialect): string =>
  jsonObject(dialect, membersOf(table, schema))

/** Returns the JSON member of an SQL expression by its type. */
export function memberOf (type: ColumnType, sql: string): Member {
  if (typeof type === 'object') return enumText(sql)
  return { bigint: integer, text, boolean, time }[type](sql)
}

/**
 * Returns the list of a table's records.
 *
 * @param filters the fields that filters compare. The filter of the field that orders the list takes several values
 */
export function listOf (table: Table, schema: TObject, filters: string[] = []): ListDefinition {
  return {
    name: table.name,
    from: `${table.name} ${ALIAS}`,
    record: recordOf(table, schema),
    filters: Object.fromEntries(filters.map((field) => [field, filterOf(table, field)])),
    indexes: indexesOf(table, filters)
  }
}

function filterOf (table: Table, field: string): Filter {
  const column = `${ALIAS}.${columnOf(table, field)}`
  if (field === table.order) return { type: 'json', column }
  const known = table.columns[field]!
  return { type: inputType(known), column, ...typeof known.type === 'object' && { enum: known.type.enum } }
}

/** Returns the indexes of the account and of filters, in the order of the list. */
function indexesOf (table: Table, filters: string[]): Index[] {
  const usable = table.indexes.filter((fields) => fields.at(-1) === table.order && fields.includes('accountId') &&
    fields.every((field) => ['accountId', table.order, ...filters].includes(field)))
  return usable.map((fields) => {
    const names = fields.map((field) => columnOf(table, field))
    const others = fields.slice(0, -2)
    const isMerged = table.columns[fields.at(-2)!]!.type === 'boolean' &&
      !usable.some((index) => index.length === fields.length - 1 && others.every((field) => index.includes(field)))
    return {
      // As Prisma names them.
      name: `${table.name}_${names.join('_')}_idx`,
      columns: names.slice(0, -1).map((name) => `${ALIAS}.${name}`),
      ...isMerged && { last: ['false', 'true'] },
      position: `${ALIAS}.${names.at(-1)!}`
    }
  })
}

/**
 * Returns a function that finds one record of an account by id, or `undefined` if the account has no such record.
 *
 * @param options the field with the id that clients know; in SQL over a row `r`, the record, and the number of its
 *   entity tag
 */
export function findRecord<Id extends number | string = number> (
  table: Table, schema: TObject, { id = table.id, record = recordOf(table, schema), version = `${ALIAS}.version` } = {}
): FindRecord<Id> {
  const query: Query<{ account: number, id: Id }, { version: number, record: string }> = {
    sql: (dialect: Dialect) => `
      SELECT i.ord, ${version} AS version, ${record(dialect)} AS record
      FROM ${dialect.jsonRows('i', { ord: 'ordinality', account: 'bigint', id: inputType(table.columns[id]!) })}
      JOIN ${table.name} ${ALIAS} ON ${ALIAS}.${columnOf(table, id)} = i.id AND ${ALIAS}.account_id = i.account`
  }
  return async (read, account, id) => {
    const row = await read(query, { account, id })
    return row && { record: row.record, etag: etagOf(row.version) }
  }
}

/** Returns a function that reads a page of an account's list. */
export function listRecords (list: ListDefinition): ListRecords {
  return async (read, account, page) => await read(...pageQuery(list, page, account)) as Page
}
