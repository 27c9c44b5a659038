import type { Query, Read } from '../database/reads/query.ts'
import type { SerializedRecord } from '../database/sql/json-object.ts'
import { pageEtag } from '../http/responses.ts'
import type { Limits } from './schemas.ts'

const LIMIT_COLUMNS = `
  l.requests, l.window_seconds AS "windowSeconds", l.per, l.fields, l.retry_after AS "retryAfter", l.refused, l.early`

/** The columns; numbers are `bigint` in reads of requests. */
export type LimitsRow = { [Name in keyof Limits]: Limits[Name] extends number ? number | bigint : Limits[Name] }

export function limitsOf (
  { requests, windowSeconds, per, fields, retryAfter, refused, early }: LimitsRow
): Limits {
  return {
    requests: Number(requests),
    windowSeconds: Number(windowSeconds),
    per,
    fields,
    retryAfter,
    refused: Number(refused),
    early: Number(early)
  }
}

/** Returns the entity tag of limits: they have no version, because the counters change with every refused request. */
export function limitsEtag (limits: Limits): string {
  return pageEtag(JSON.stringify(limits), '')
}

const limitsByAccount: Query<{ account: number }, LimitsRow> = {
  sql: (dialect) => `
    SELECT i.ord, ${LIMIT_COLUMNS} FROM ${dialect.jsonRows('i', { ord: 'ordinality', account: 'bigint' })}
    JOIN account_limits l ON l.account_id = i.account`
}

/** Finds the limits of an account, or returns `undefined` if it has set none. */
export async function findLimits (read: Read, account: number): Promise<SerializedRecord | undefined> {
  const row = await read(limitsByAccount, { account })
  if (row === undefined) return undefined
  const limits = limitsOf(row)
  return { record: JSON.stringify(limits), etag: limitsEtag(limits) }
}
