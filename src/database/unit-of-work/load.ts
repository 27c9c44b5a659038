import { getOrAdd } from '../get-or-add.ts'
import type { Dialect } from '../dialect.ts'
import { idsOf, type IdRange } from '../group-commit/transaction.ts'
import { idOf, type Table } from '../table.ts'
import type { OwnStatement } from '../statements.ts'
import type { IdentityMap, Row } from './account-rows.ts'
import { allSql, childrenSql, linkKey, loadSql } from './row-statements.ts'
import type { Link, Need, RowLock } from './write.ts'

/** A statement, and what is done with its rows. */
export interface Load {
  statement: OwnStatement
  onRows: (rows: Row[]) => void
}

/** The needs of a write, and the account whose rows they are. */
export interface AccountNeeds {
  account: number
  needs: readonly Need[]
}

/**
 * Returns the statements that lock and load what the writes of a group need, in one order for all groups: tables as
 * they are given, parents first, and ids ascending. So two groups never wait for each other.
 *
 * @param created how many rows the writes create in each table at most
 * @throws when no resource registers a table
 */
export function loadsOf (
  dialect: Dialect, tables: readonly Table[], needed: readonly AccountNeeds[],
  created: ReadonlyMap<Table, number>, map: IdentityMap
): Load[] {
  const byTable = groupByTable(needed)
  const ordered = tables.filter((table) => byTable.has(table)).map((table) => ({ table, needs: byTable.get(table)! }))
  if (ordered.length < byTable.size) {
    const { name } = [...byTable.keys()].find((table) => !tables.includes(table))!
    throw new Error(`rows of ${name} cannot be locked: no resource registers this table`)
  }
  return [
    ...ordered.flatMap(({ table, needs }) => rowLoads(dialect, table, needs, map)),
    ...ordered.flatMap(({ table, needs }) => childrenLoads(dialect, table, needs, map)),
    ...[...created].map(([table, count]) => idLoad(dialect, table, count, map))
  ]
}

/** What a group needs of a table. */
interface TableNeeds {
  /** At least one write changes rows: then all are locked for that. */
  lock: RowLock
  /** Accounts and ids, by the link that has the ids. Those without a link are of the table itself. */
  ids: Map<string, { link: Link | undefined, inputs: Map<string, Row> }>
  /** Accounts and values, by their fields and the link that has the first. */
  children: Map<string, { fields: string[], link: Link | undefined, inputs: Map<string, Row> }>
  /** The accounts of which all rows are needed. */
  all: Set<number>
}

function groupByTable (needed: readonly AccountNeeds[]): Map<Table, TableNeeds> {
  const byTable = new Map<Table, TableNeeds>()
  for (const { account, needs } of needed) {
    for (const need of needs) {
      const ofTable = getOrAdd(byTable, need.table, (): TableNeeds =>
        ({ lock: 'KEY SHARE', ids: new Map(), children: new Map(), all: new Set() }))
      if (need.kind === 'children') {
        const input: Row = { account }
        let link: Link | undefined
        for (const [field, value] of Object.entries(need.where)) {
          if (typeof value === 'object') link = value
          input[field] = typeof value === 'object' ? value.id : value
        }
        const fields = Object.keys(need.where)
        // The ids of two tables can be the same number.
        const shape = `${fields.join()} ${linkKey(link)}`
        getOrAdd(ofTable.children, shape, () => ({ fields, link, inputs: new Map<string, Row>() }))
          .inputs.set(JSON.stringify(input), input)
      } else if (need.kind === 'all') {
        ofTable.all.add(account)
      } else {
        if (need.lock === 'UPDATE') ofTable.lock = 'UPDATE'
        const link = typeof need.id === 'number' ? undefined : need.id
        const id = typeof need.id === 'number' ? need.id : need.id.id
        const ofLink = getOrAdd(ofTable.ids, linkKey(link), () => ({ link, inputs: new Map<string, Row>() }))
        ofLink.inputs.set(`${account} ${id}`, { account, id })
      }
    }
  }
  return byTable
}

function rowLoads (dialect: Dialect, table: Table, { lock, ids, all }: TableNeeds, map: IdentityMap): Load[] {
  const onRows = (rows: Row[]): void => { map.addLoaded(table, withBooleans(table, rows)) }
  const loads: Load[] = []
  if (all.size > 0) {
    const values = [JSON.stringify(Array.from(all, (account) => ({ account })))]
    // A statement that waited for the lock of a row does not see the rows that were added meanwhile: the next one does.
    if (dialect.isServer) loads.push({ statement: { sql: allSql(dialect, table, 'ids'), values }, onRows: () => {} })
    loads.push({ statement: { sql: allSql(dialect, table, 'rows'), values }, onRows })
  }
  if (ids.size > 0) {
    const sources = [...ids.keys()].sort().map((key) => ids.get(key)!)
    const sql = loadSql(dialect, table, sources.map(({ link }) => link), lock)
    const values = sources.map(({ inputs }) => JSON.stringify([...inputs.values()]))
    loads.push({ statement: { sql, values }, onRows })
  }
  return loads
}

/** Rows that the group loads by their ids are known, and can change: only another one counts. */
function childrenLoads (dialect: Dialect, table: Table, { children, ids }: TableNeeds, map: IdentityMap): Load[] {
  if (children.size === 0) return []
  const known = JSON.stringify([...ids.get('')?.inputs.values() ?? []])
  return Array.from(children.values(), ({ fields, link, inputs }) => ({
    statement: {
      sql: childrenSql(dialect, table, fields, link), values: [known, JSON.stringify([...inputs.values()])]
    },
    onRows: (rows) => { map.addLoaded(table, withBooleans(table, rows)) }
  }))
}

function idLoad (dialect: Dialect, table: Table, count: number, map: IdentityMap): Load {
  return {
    statement: { sql: dialect.newIds(table.name, idOf(table)), values: [count] },
    onRows: (rows) => { map.addIds(table, idsOf(rows as unknown as IdRange[])) }
  }
}

/** SQLite's booleans are 0 and 1. */
function withBooleans ({ columns }: Table, rows: Row[]): Row[] {
  const fields = Object.keys(columns).filter((field) => columns[field]!.type === 'boolean')
  for (const row of rows) for (const field of fields) if (typeof row[field] === 'number') row[field] = row[field] === 1
  return rows
}
