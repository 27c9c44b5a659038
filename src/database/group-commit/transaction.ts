import type { Dialect } from '../dialect.ts'
import { insertSql, type Table } from '../sql/bulk-insert.ts'
import type { TransactionClient } from '../open-database.ts'

/** What a command works on: one transaction, shared by all commands of its group. */
export interface Transaction {
  dialect: Dialect
  /** When the group began, RFC 3339 in UTC with milliseconds; the time of all its changes. */
  now: string
  /** Runs a statement whose parameters are JSON arrays of inputs, and returns its rows. */
  query: <Row>(sql: string, ...inputs: Array<readonly object[]>) => Promise<Row[]>
  /** Runs a statement with one parameter, a JSON array of inputs. Nothing to do for no inputs. */
  execute: (sql: string, inputs: readonly object[]) => Promise<void>
  /**
   * As `execute`, but it waits for the next statement that is run, or for the events, with which all that waits goes
   * in one statement where the database can. No two that wait may write the same row.
   */
  defer: (sql: StatementOf, inputs: readonly object[]) => void
  /** Runs a statement in one with all that waits. Only where a statement may hold others. */
  queryWithDeferred: <Row>(sql: TogetherOf, ...inputs: Array<readonly object[]>) => Promise<Row[]>
  /** Runs all that waits. */
  flush: () => Promise<void>
  /** Inserts rows, `later`, with ids that were taken before. */
  insert: (table: Table, rows: readonly object[]) => void
  /** Ids for rows about to be inserted, ascending: those that were taken when the group began, if they suffice. */
  allocateIds: (table: Table, count: number) => Promise<number[]>
  /** As `newIds`, as ranges without a gap. */
  allocateIdRanges: (table: Table, count: number) => Promise<Range[]>
  /** Prisma's own client, within the transaction. */
  client: () => Promise<TransactionClient>
  /** The categories that pets of the group may be put into, with their accounts: none goes while the group lasts. */
  categories: Map<number, number>
  /** New ids by the names of their tables, taken when the group began. */
  ids: Map<string, number[]>
}

/** A statement that reads its inputs from one of several parameters. */
export type StatementOf = (parameter: number) => string

/** A statement with others before it: `written` is a condition that holds once they are done. */
export type TogetherOf = (parameter: number, written: string) => { with: string[], select: string }

export interface Range { first: number, last: number }

export function createTransaction (prisma: TransactionClient, dialect: Dialect): Transaction {
  let waiting: Array<{ sql: StatementOf, inputs: readonly object[] }> = []
  const ids = new Map<string, number[]>()

  function takeWaiting (): typeof waiting {
    const taken = waiting
    waiting = []
    return taken
  }

  async function flush (): Promise<void> {
    for (const { sql, inputs } of takeWaiting()) await prisma.$executeRawUnsafe(sql(1), JSON.stringify(inputs))
  }

  async function run<Row> (sql: string, inputs: Array<readonly object[]>): Promise<Row[]> {
    const rows = await prisma.$queryRawUnsafe<Row[]>(sql, ...inputs.map((list) => JSON.stringify(list)))
    // Taken out: see `createRead`.
    return rows.splice(0).map(withNumbers)
  }

  async function query<Row> (sql: string, ...inputs: Array<readonly object[]>): Promise<Row[]> {
    await flush()
    return await run<Row>(sql, inputs)
  }

  function defer (sql: StatementOf, inputs: readonly object[]): void {
    if (inputs.length > 0) waiting.push({ sql, inputs })
  }

  async function allocateIdRanges ({ name, id }: Table, count: number): Promise<Range[]> {
    // SQLite would count them a second time.
    ids.delete(name)
    const ranges = await query<Range>(dialect.allocateIds(name, id, dialect.jsonRows('i', { count: 'bigint' })), [{ count }])
    return ranges.sort((a, b) => a.first - b.first)
  }

  return {
    dialect,
    now: new Date().toISOString(),
    query,
    async execute (sql, inputs) {
      if (inputs.length === 0) return
      await flush()
      await prisma.$executeRawUnsafe(sql, JSON.stringify(inputs))
    },
    defer,
    flush,
    async queryWithDeferred (sql, ...inputs) {
      // In one order always: a statement's text is prepared once, and the same parts come in any order.
      const before = takeWaiting().map((write) => ({ ...write, text: write.sql(1) })).sort((a, b) => a.text < b.text ? -1 : 1)
      const names = before.map((_, i) => `written_${i + 1}`)
      const { with: parts, select } = sql(before.length + 1, ['true', ...names.map((name) => `(SELECT count(*) FROM ${name}) >= 0`)].join(' AND '))
      const writes = before.map(({ sql }, i) => `${names[i]} AS (${sql(i + 1)} RETURNING 1)`)
      return await run(`WITH ${[...writes, ...parts].join(', ')} ${select}`, [...before.map(({ inputs }) => inputs), ...inputs])
    },
    insert (table, rows) {
      defer((parameter) => insertSql(dialect, table, parameter), rows)
    },
    async allocateIds (table, count) {
      const taken = ids.get(table.name) ?? []
      return taken.length >= count ? taken.splice(0, count) : (await allocateIdRanges(table, count)).flatMap(idsOf)
    },
    allocateIdRanges,
    async client () {
      await flush()
      return prisma
    },
    categories: new Map(),
    ids
  }
}

export function idsOf ({ first, last }: Range): number[] {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i)
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
