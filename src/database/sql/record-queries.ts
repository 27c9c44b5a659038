import type { Dialect, InputType } from '../dialect.ts'
import { etagOf } from '../entity-tag.ts'
import type { Query, Read } from '../reads/query.ts'
import { jsonObject, type Member, type SerializedRecord } from './json-object.ts'
import { pageQuery, type ListDefinition, type Page, type PageRequest } from './keyset-pagination.ts'

interface RecordSource {
  /** The table with its alias, such as `pets p`. It has the columns account_id and version. */
  from: string
  members: Record<string, Member>
  /** The column of the record's id, such as `p.id`, and its type. */
  id: string
  idType?: InputType
}

type FindRecord<Id> = (read: Read, account: number, id: Id) => Promise<SerializedRecord | undefined>
type ListRecords = (read: Read, account: number, page: PageRequest) => Promise<Page>

/** Returns a function that finds one record of an account by id, or `undefined` if the account has no such record. */
export function findRecord<Id extends number | string = number> (
  { from, members, id, idType = 'bigint' }: RecordSource
): FindRecord<Id> {
  const alias = from.split(' ').at(-1)!
  const query: Query<{ account: number, id: Id }, { version: bigint, record: string }> = {
    sql: (dialect: Dialect) => `
      SELECT i.ord, ${alias}.version, ${jsonObject(dialect, members)} AS record
      FROM ${dialect.jsonRows('i', { ord: 'ordinality', account: 'bigint', id: idType })}
      JOIN ${from} ON ${id} = i.id AND ${alias}.account_id = i.account`
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
