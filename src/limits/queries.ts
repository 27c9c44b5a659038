import type { Query, Read } from '../database/reads/query.ts'
import { jsonObject, type SerializedRecord } from '../database/sql/json-object.ts'
import { membersOf } from '../database/sql/record-queries.ts'
import { accountLimits } from '../generated/tables.ts'
import { pageEtag } from '../http/responses.ts'
import { LimitsSchema, type Limits } from './schemas.ts'

/** Returns the entity tag of limits: they have no version, because the counters change with every refused request. */
export function limitsEtag (limits: Limits): string {
  return pageEtag(JSON.stringify(limits))
}

const limitsByAccount: Query<{ account: number }, { record: string }> = {
  sql: (dialect) => `
    SELECT i.ord, ${jsonObject(dialect, membersOf(accountLimits, LimitsSchema, 'l'))} AS record
    FROM ${dialect.jsonRows('i', { ord: 'ordinality', account: 'bigint' })}
    JOIN account_limits l ON l.account_id = i.account`
}

/** Finds the limits of an account, or returns `undefined` if it has set none. */
export async function findLimits (read: Read, account: number): Promise<SerializedRecord | undefined> {
  const row = await read(limitsByAccount, { account })
  return row && { record: row.record, etag: pageEtag(row.record) }
}
