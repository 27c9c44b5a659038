import { AccountRows, IdentityMap, type Row } from '../../src/database/unit-of-work/account-rows.ts'
import type { Changes } from '../../src/database/unit-of-work/success.ts'
import type { Need, WantedValues, Write } from '../../src/database/unit-of-work/write.ts'
import { completeRow, type Table } from '../../src/database/table.ts'
import * as tables from '../../src/generated/tables.ts'
import type { Conditions } from '../../src/http/conditional-requests.ts'

// What writes decide, without a database. The file `test/<name>/decisions.ts` has the tables of a resource.

type Tables = typeof tables
type FieldsOf<T> = T extends Table<infer R> ? Partial<R> : never

/** Rows by the name of their table. Fields that are not given have the default of the model, or null. */
export type Rows = { [Name in keyof Tables]?: Array<FieldsOf<Tables[Name]>> }

/**
 * What a write stores, by table and id: the fields of a row that changed; those of a new row that are not the default
 * of the model, or null; and `null` for a row that was deleted.
 */
type Saved = { [Name in keyof Tables]?: Record<number, FieldsOf<Tables[Name]> | null> }

/** What is not named has no value, or is empty. */
interface Accepted<Output> {
  record?: Output
  etag?: string
  /** Their types. */
  events?: string[]
  changes?: Changes
  saved?: Saved
}

export interface Case<Input, Output> {
  /** The rows of the account before. The write sees those that it needs. */
  rows?: Rows
  /** `null` for a write of no account; `ACCOUNT` by default. */
  account?: number | null
  input: Input
  /** The code of the error, if the write is refused. */
  outcome: Accepted<Output> | string
}

/** The table of a write: its cases by name. */
export interface Decisions {
  write: Write<unknown, unknown>
  cases: Record<string, Case<unknown, unknown>>
}

export const ACCOUNT = 1

/** The id of a new row, in each table. */
export const NEW_ID = 11

/** The time of the account. */
export const NOW = '2026-11-21T10:00:00.000Z'

export function decisionsOf<Input, Output> (
  write: Write<Input, Output>, cases: Record<string, Case<Input, Output>>
): Decisions {
  return { write, cases } as Decisions
}

/** Returns the cases in which a change of one record is refused, whatever it changes. */
export function refusals<Input extends { conditions: Conditions }> (
  input: Input, rows: Rows, notFound: string, etag = '"1"'
): Record<string, Case<Input, never>> {
  const when = (conditions: Conditions): Case<Input, never> =>
    ({ rows, input: { ...input, conditions }, outcome: 'PRECONDITION_FAILED' })
  return {
    'a missing record': { input: { ...input, conditions: { ifMatch: '*' } }, outcome: notFound },
    'If-Match of another version': when({ ifMatch: ['"stale"'] }),
    'If-None-Match of the version': when({ ifNoneMatch: [etag] })
  }
}

/** Decides a case. The rows and the input are frozen: a write that changes them throws. */
export function decide (
  write: Write<unknown, unknown>, { rows = {}, account = ACCOUNT, input }: Case<unknown, unknown>
): Accepted<unknown> | string {
  freeze(input)
  const map = load(write.needs?.(input) ?? [], rows)
  for (const table of write.creates ?? []) map.addIds(table, [NEW_ID])
  try {
    const { record, etag, events = [], changes } = map.attempt(() =>
      write.decide(input, new AccountRows(map, account, NOW)))
    const saved = savedIn(map)
    return {
      ...record === undefined ? {} : { record },
      ...etag === undefined ? {} : { etag },
      ...events.length === 0 ? {} : { events: events.map(({ type }) => type) },
      ...changes === undefined ? {} : { changes },
      ...Object.keys(saved).length === 0 ? {} : { saved }
    }
  } catch (error) {
    const { code } = error as { code?: string }
    if (code === undefined) throw error
    return code
  }
}

/** Loads what the first message of a group would load: the rows that the write needs, and nothing else. */
function load (needs: readonly Need[], rows: Rows): IdentityMap {
  const map = new IdentityMap()
  const rowsOf = (table: Table): Row[] => (rows[nameOf(table)] ?? []).map((row) =>
    freeze(completeRow(table, { accountId: ACCOUNT, ...row })))
  const find = (table: Table, id: unknown): Row | undefined => rowsOf(table).find((row) => row[table.id] === id)
  const valueOf = (value: WantedValues[string]): unknown =>
    typeof value === 'object' ? find(value.table, value.id)?.[value.field] : value
  for (const need of needs) {
    if (need.kind === 'all') map.addLoaded(need.table, rowsOf(need.table))
    if (need.kind !== 'row') continue
    const row = find(need.table, valueOf(need.id))
    if (row !== undefined) map.addLoaded(need.table, [row])
  }
  for (const need of needs) {
    if (need.kind !== 'children') continue
    const { table } = need
    const where = Object.entries(need.where).map(([field, value]) => [field, valueOf(value)] as const)
    const others = rowsOf(table).filter((row) => !map.entriesOf(table).has(row[table.id] as number))
    const other = others.find((row) => where.every(([field, value]) => row[field] === value))
    if (other !== undefined) map.addLoaded(table, [other])
  }
  return map
}

function savedIn (map: IdentityMap): Record<string, object> {
  const saved: Record<string, Record<string, Row | null>> = {}
  for (const [table, entries] of map.tables) {
    for (const [id, { stored, current }] of entries) {
      if (current === stored) continue
      const before = stored ?? completeRow(table, { [table.id]: id, accountId: ACCOUNT })
      const changed = current && Object.fromEntries(
        Object.entries(current).filter(([field, value]) => value !== before[field]))
      saved[nameOf(table)] = { ...saved[nameOf(table)], [id]: changed ?? null }
    }
  }
  return saved
}

function nameOf (table: Table): keyof Tables {
  return (Object.keys(tables) as Array<keyof Tables>).find((name) => tables[name] === table)!
}

/** Freezes a value with all its members. */
function freeze<Value> (value: Value): Value {
  if (typeof value === 'object' && value !== null) Object.values(Object.freeze(value)).forEach(freeze)
  return value
}
