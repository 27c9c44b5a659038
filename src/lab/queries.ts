import type { Dialect } from '../database/dialect.ts'
import { etagOf } from '../database/record.ts'
import type { Query, Read } from '../database/reads/query.ts'
import { integer, json, jsonObject, optional } from '../database/sql/json-object.ts'
import type { ListDefinition } from '../database/sql/keyset-pagination.ts'
import { findRecord, listOf, listRecords, membersOf } from '../database/sql/record-queries.ts'
import { faults, snapshots } from '../generated/tables.ts'
import { FaultSchema, SnapshotSchema } from './schemas.ts'
import { StoreCountsSchema } from './stored-tables.ts'

export const faultRecord = (dialect: Dialect): string => jsonObject(dialect, membersOf(faults, FaultSchema, 'r', {
  effect: json('r.effect'),
  // A fault that lasts has no number of them.
  times: optional(integer('CASE WHEN r.for_seconds IS NULL THEN r.times END')),
  rate: optional(json('r.rate')),
  passed: integer('(r.passed + r.spared)')
}))

/** Returns the condition of the faults that have not ended at a time of the account's clock. */
export const lasts = (dialect: Dialect, fault: string, now: string): string =>
  `(${fault}.ends_at IS NULL OR ${fault}.ends_at > ${dialect.toTime(now)})`

/** A fault that has hit all its requests, or has ended, is not listed. */
export const faultList: ListDefinition = {
  name: 'faults',
  from: 'faults r',
  record: faultRecord,
  filters: {
    openAt: { type: 'text', column: 'r.ends_at', condition: (dialect, now) => lasts(dialect, 'r', now) }
  },
  indexes: [{
    name: 'faults_open_idx', columns: ['r.account_id'], position: 'r.id', where: 'r.hits < r.times'
  }]
}

export const listFaults = listRecords(faultList)

/** Returns the entity tag of a fault, of which only the counters change. */
export function faultEtag ({ passed, hits }: { passed: number | bigint, hits: number | bigint }): string {
  return etagOf(Number(passed) + Number(hits) + 1)
}

export const findFault = findRecord(faults, FaultSchema, {
  record: faultRecord, version: 'r.passed + r.spared + r.hits + 1'
})

const snapshotRecord = (dialect: Dialect): string => jsonObject(dialect, membersOf(snapshots, SnapshotSchema, 'r', {
  counts: json(`(${jsonObject(dialect, membersOf(snapshots, StoreCountsSchema))})`)
}))

export const snapshotList: ListDefinition = { ...listOf(snapshots, SnapshotSchema), record: snapshotRecord }

export const listSnapshots = listRecords(snapshotList)

/** Nothing of a snapshot ever changes. */
export const SNAPSHOT_ETAG = etagOf(1)

export const findSnapshot = findRecord(snapshots, SnapshotSchema, { record: snapshotRecord, version: '1' })

const clockByAccount: Query<{ account: number }, { offset: bigint }> = {
  sql: (dialect) => `
    SELECT i.ord, a.clock_offset_seconds AS "offset"
    FROM ${dialect.jsonRows('i', { ord: 'ordinality', account: 'bigint' })}
    JOIN accounts a ON a.id = i.account AND a.deleted_at IS NULL`
}

/** Returns how far the clock of an account is ahead, in seconds; `undefined` when the account was deleted. */
export async function findClockOffset (read: Read, account: number): Promise<number | undefined> {
  const row = await read(clockByAccount, { account })
  return row && Number(row.offset)
}

/** The lab of an account, as every process needs to know it. */
export interface AccountState {
  account: number
  offsetSeconds: number
  faults: Array<{ operation: string, keyId: number | null, endsAt: string | null }>
  /** How many requests the journal keeps; `null` while it is off. */
  journal: number | null
  /** Whether it has set limits. */
  limits: boolean
}

const stateOf = (dialect: Dialect, account: string, offset: string): string => `
  '{"account":' || ${account} || ',"offsetSeconds":' || ${offset} || ',"faults":[' || coalesce(
    (SELECT string_agg('{"operation":' || ${dialect.quote('f.operation')} || ',"keyId":' ||
      coalesce(CAST(f.key_id AS text), 'null') || ',"endsAt":' ||
      coalesce('"' || ${dialect.time('f.ends_at')} || '"', 'null') || '}', ',' ORDER BY f.id)
    FROM faults f WHERE f.account_id = ${account} AND f.hits < f.times), '') || '],"journal":' || coalesce((
    SELECT CAST(j.keep AS text) FROM journals j WHERE j.account_id = ${account}), 'null') ||
    ',"limits":' || CASE WHEN EXISTS (
    SELECT 1 FROM account_limits l WHERE l.account_id = ${account}) THEN 'true' ELSE 'false' END || '}'`

const list = (states: string): string =>
  `(SELECT '[' || coalesce(string_agg(x.state, ',' ORDER BY x.account), '') || ']' FROM (${states}) AS x)`

/** Reads the accounts with a moved clock, an open fault, a journal or limits, by the indexes that hold nothing else. */
const activeStates: Query<object, { states: string }> = {
  sql: (dialect) => `
    SELECT i.ord, ${list(`
      SELECT a.id AS account, ${stateOf(dialect, 'a.id', 'a.clock_offset_seconds')} AS state FROM accounts a
      WHERE ${dialect.inSubquery('a.id', `
        SELECT m.id FROM accounts m WHERE m.clock_offset_seconds > 0
        UNION SELECT f.account_id FROM ${dialect.useIndex('faults f', 'f', 'faults_open_idx')} WHERE f.hits < f.times
        UNION SELECT j.account_id FROM journals j WHERE j.keep IS NOT NULL
        UNION SELECT l.account_id FROM account_limits l`)} AND a.deleted_at IS NULL`)} AS states
    FROM ${dialect.jsonRows('i', { ord: 'ordinality' })}`
}

const movedClocks: Query<object, { clocks: string }> = {
  sql: (dialect) => `
    SELECT i.ord, ${list(`
      SELECT a.id AS account, '{"account":' || a.id || ',"offsetSeconds":' || a.clock_offset_seconds || '}' AS state
      FROM accounts a WHERE a.clock_offset_seconds > 0 AND a.deleted_at IS NULL`)} AS clocks
    FROM ${dialect.jsonRows('i', { ord: 'ordinality' })}`
}

/** Reads the clocks that were moved, by the index that holds nothing else. */
export async function findMovedClocks (
  read: Read
): Promise<Array<Pick<AccountState, 'account' | 'offsetSeconds'>>> {
  return JSON.parse((await read(movedClocks, {}))?.clocks ?? '[]') as AccountState[]
}

/** A change of an account's faults or clock. Each change of an account has a later time than the one before it. */
export interface StateChange {
  account: number
  /** In real time, RFC 3339 in UTC. */
  changedAt: string
}

const changesSince: Query<{ since: string }, { changes: string }> = {
  sql: (dialect) => `
    SELECT i.ord, ${list(`
      SELECT l.account_id AS account,
        '{"account":' || l.account_id || ',"changedAt":"' || ${dialect.time('l.changed_at')} || '"}' AS state
      FROM lab_states l WHERE l.changed_at >= ${dialect.toTime('i.since')}`)} AS changes
    FROM ${dialect.jsonRows('i', { ord: 'ordinality', since: 'text' })}`
}

const statesOfAccounts: Query<{ id: number }, { states: string }> = {
  sql: (dialect) => `
    SELECT i.ord, ${list(`
      SELECT a.id AS account, ${stateOf(dialect, 'a.id', 'a.clock_offset_seconds')} AS state FROM accounts a
      WHERE a.id = i.id AND a.deleted_at IS NULL`)} AS states
    FROM ${dialect.jsonRows('i', { ord: 'ordinality', id: 'bigint' })}`
}

export async function findActiveStates (read: Read): Promise<AccountState[]> {
  return statesIn(await read(activeStates, {}))
}

/** @param since in real time, RFC 3339 in UTC */
export async function findChanges (read: Read, since: string): Promise<StateChange[]> {
  const row = await read(changesSince, { since })
  return JSON.parse(row?.changes ?? '[]') as StateChange[]
}

/** @returns `undefined` when the account was deleted */
export async function findStateOf (read: Read, account: number): Promise<AccountState | undefined> {
  return statesIn(await read(statesOfAccounts, { id: account }))[0]
}

function statesIn (row: { states: string } | undefined): AccountState[] {
  return JSON.parse(row?.states ?? '[]') as AccountState[]
}
