import type { Dialect } from './dialect.ts'
import { insertSql, type Table } from './insert.ts'
import type { TransactionClient } from './open.ts'

/** What a command works on: one transaction, shared by all commands of its group. */
export interface Session {
  prisma: TransactionClient
  dialect: Dialect
  /** When the group began, RFC 3339 in UTC with milliseconds; the time of all its changes. */
  now: string
  /** Runs a statement with one parameter, a JSON array of inputs, and returns its rows. */
  query: <Row>(sql: string, inputs: readonly object[]) => Promise<Row[]>
  /** Runs a statement with one parameter, a JSON array of inputs. Nothing to do for no inputs. */
  execute: (sql: string, inputs: readonly object[]) => Promise<void>
  /** Inserts rows; their ids, in the order of the rows. */
  insert: (table: Table, rows: readonly object[]) => Promise<number[]>
  /** Ids for rows about to be inserted, ascending. */
  newIds: (table: string, column: string, count: number) => Promise<number[]>
  /** As `newIds`, as ranges without a gap: usually one, more where another process takes ids at the same time. */
  newIdRanges: (table: string, column: string, count: number) => Promise<Array<{ first: number, last: number }>>
  /** The categories that pets of the group may be put into, with their accounts: none goes while the group lasts. */
  categories: Map<number, number>
}

export function createSession (prisma: TransactionClient, dialect: Dialect): Session {
  async function query<Row> (sql: string, inputs: readonly object[]): Promise<Row[]> {
    const rows = await prisma.$queryRawUnsafe<Row[]>(sql, JSON.stringify(inputs))
    return rows.map(withNumbers)
  }

  return {
    prisma,
    dialect,
    now: new Date().toISOString(),
    query,
    async execute (sql, inputs) {
      if (inputs.length > 0) await prisma.$executeRawUnsafe(sql, JSON.stringify(inputs))
    },
    async insert (table, rows) {
      if (rows.length === 0) return []
      const inserted = await query<{ ord: number, id: number }>(insertSql(dialect, table), rows.map((row, ord) => ({ ord, ...row })))
      return inserted.sort((a, b) => a.ord - b.ord).map(({ id }) => id)
    },
    async newIds (table, column, count) {
      const rows = await prisma.$queryRawUnsafe<Array<{ id: bigint }>>(dialect.newIds(table, column), count)
      return rows.map(({ id }) => Number(id)).sort((a, b) => a - b)
    },
    async newIdRanges (table, column, count) {
      const rows = await prisma.$queryRawUnsafe<Array<{ first: number, last: number }>>(`
        SELECT min(id) AS first, max(id) AS last
        FROM (SELECT id, id - row_number() OVER (ORDER BY id) AS gap FROM (${dialect.newIds(table, column)}) AS taken) AS numbered
        GROUP BY gap ORDER BY first`, count)
      return rows.map(withNumbers)
    },
    categories: new Map()
  }
}

/** Raw rows hold bigints; ids and counts fit a double (the contract keeps ids below 2^53). */
function withNumbers<Row> (row: Row): Row {
  const values = row as Record<string, unknown>
  for (const name in values) {
    if (typeof values[name] === 'bigint') values[name] = Number(values[name])
  }
  return row
}

/** The inputs without repetitions: a row that several commands ask for is loaded once. */
export function distinct<Input extends object> (inputs: Input[]): Input[] {
  return [...new Map(inputs.map((input) => [JSON.stringify(input), input])).values()]
}
