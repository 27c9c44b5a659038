import { getOrAdd } from '../get-or-add.ts'
import type { Dialect } from '../dialect.ts'
import { idsOf, type IdRange } from '../group-commit/transaction.ts'
import { idOf, type Table } from '../table.ts'
import type { OwnStatement } from '../statements.ts'
import type { IdentityMap, Row, Values } from './account-rows.ts'
import { allSql, childrenSql, linkKey, loadSql } from './row-statements.ts'
import type { Link, Need, RowLock, Through, WantedValues } from './write.ts'

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
 */
export function loadsOf (
  dialect: Dialect, tables: readonly string[], needed: readonly AccountNeeds[],
  created: ReadonlyMap<Table, number>, map: IdentityMap
): Load[] {
  const ordered = Array.from(groupByTable(needed), ([table, needs]) =>
    ({ table, needs, at: positionOf(tables, table) }))
  ordered.sort((a, b) => a.at - b.at)
  return [
    ...ordered.flatMap(({ table, needs }) => rowLoads(dialect, table, needs, map)),
    ...ordered.flatMap(({ table, needs }) => childrenLoads(dialect, table, needs, map)),
    ...[...created].map(([table, count]) => idLoad(dialect, table, count, map))
  ]
}

/** Values of an account. */
interface Children {
  account: number
  where: WantedValues
  /** What a statement gets for each value: the id of the row that has it, or the value. */
  sent: Array<number | string | boolean>
}

/** What a group needs of a table. */
interface TableNeeds {
  /** At least one write changes rows: then all are locked for that. */
  lock: RowLock
  /** Accounts and ids, by the link that has the ids. Those without a link are of the table itself. */
  ids: Map<string, { link: Link | undefined, inputs: Map<string, Row> }>
  /** Values by account and what is sent for them, by their fields and their link. */
  children: Map<string, Map<string, Children>>
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
        const { where } = need
        const sent = Object.values(where).map((value) => typeof value === 'object' ? value.id : value)
        // The ids of two tables can be the same number.
        const shape = `${Object.keys(where).join()} ${linkKey(linkOf(where))}`
        getOrAdd(ofTable.children, shape, () => new Map<string, Children>())
          .set(`${account} ${JSON.stringify(sent)}`, { account, where, sent })
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
  const onRows = (rows: Row[]): void => { map.addLoaded(table, dialect.isServer ? rows : withBooleans(table, rows)) }
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
  return Array.from(children.values(), (byValues) => {
    const list = [...byValues.values()]
    const { where } = list[0]!
    const fields = Object.keys(where)
    const inputs = list.map(({ account, sent }, position) => {
      const input: Row = { position, account }
      for (const [i, field] of fields.entries()) input[field] = sent[i]
      return input
    })
    return {
      statement: {
        sql: childrenSql(dialect, table, fields, linkOf(where)),
        values: [JSON.stringify(inputs), known]
      },
      onRows: (rows) => {
        for (const { position, first } of rows) {
          const { account, where } = list[position as number]!
          map.addOther(account, table, { ...where, [fields[0]!]: first } as Values)
        }
      }
    }
  })
}

function linkOf (where: WantedValues): Through | undefined {
  const [first] = Object.values(where)
  return typeof first === 'object' ? first : undefined
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
  for (const row of rows) for (const field of fields) row[field] = row[field] === 1
  return rows
}

/** @throws when no resource registers the table */
function positionOf (tables: readonly string[], { name }: Table): number {
  const position = tables.indexOf(name)
  if (position < 0) throw new Error(`rows of ${name} cannot be locked: no resource registers this table`)
  return position
}
