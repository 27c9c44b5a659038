import { timeText, type AccountClocks } from '../account-clocks.ts'
import type { Dialect } from '../dialect.ts'
import type { TransactionClient } from '../prisma-client.ts'
import { insertSql } from '../sql/bulk-insert.ts'
import { executeStatement, queryRows, type Connection } from '../statements.ts'
import type { Table } from '../table.ts'
import type { TransactionAccess } from '../transact.ts'

/** One database transaction, shared by all commands of a group. */
export interface Transaction {
  dialect: Dialect
  /** When the group began, in real time: RFC 3339 in UTC with milliseconds. */
  startedAt: string
  /** Returns when the group began by the clock of an account: the time of all its changes. */
  now: (account: number | null) => string
  /** Returns how far the clock of an account is ahead, in ms. */
  clockOffset: (account: number | null) => number
  /** Moves the clock of an account within the transaction. */
  advanceClock: (account: number, offsetMs: number) => void
  /** @throws ClockAdvanced when another process has moved the clock of the account: the group runs again */
  confirmClock: (account: number, offsetMs: number) => void
  /** All tables of accounts, in registration order. */
  tables: readonly Table[]
  /** Runs a statement whose parameters are JSON arrays of inputs, and returns its rows. */
  query: <Row>(sql: string, ...inputs: Array<readonly object[]>) => Promise<Row[]>
  /** Runs a statement with one parameter, a JSON array of inputs. Does nothing without inputs. */
  execute: (sql: string, inputs: readonly object[]) => Promise<void>
  /**
   * Defers a write until the next statement, or until the commit hooks, where PostgreSQL runs all deferred writes in
   * one statement. Two deferred writes must not touch the same row.
   */
  defer: (sql: WriteSql, inputs: readonly object[]) => void
  /** Runs a statement in one with all deferred writes. Needs a dialect that supports writable CTEs. */
  queryWithDeferred: <Row>(sql: SqlAfterWrites, ...inputs: Array<readonly object[]>) => Promise<Row[]>
  /** Runs all deferred writes. */
  flush: () => Promise<void>
  /** Inserts rows, deferred, with allocated ids. */
  insert: (table: Table, rows: readonly object[]) => void
  /** Returns ids for new rows, ascending: those allocated when the group began, if they suffice. */
  allocateIds: (table: Table, count: number) => Promise<number[]>
  /** As `allocateIds`, but returns ranges without gaps. */
  allocateIdRanges: (table: Table, count: number) => Promise<IdRange[]>
  /** Adds to the ids that `allocateIds` returns. */
  addAllocatedIds: (table: Pick<Table, 'name'>, ids: number[]) => void
  /** The accounts of a table's locked rows, by id; filled for the rows that commands only refer to. */
  owners: (table: Pick<Table, 'name'>) => Map<number, number>
  /** Returns Prisma Client within the transaction, for writes whose speed does not matter. */
  prisma: () => Promise<TransactionClient>
}

/** A statement that reads its inputs from the parameter with this number. */
export type WriteSql = (parameter: number) => string

/** A statement behind deferred writes: `written` is a condition that is true once they are done. */
export type SqlAfterWrites = (parameter: number, written: string) => { with: string[], select: string }

export interface IdRange { first: number, last: number }

/** The transaction used an outdated time for an account. */
export class ClockAdvanced extends Error {}

interface DeferredWrite { sql: WriteSql, inputs: readonly object[] }

export function createTransaction (
  { connection, prisma }: TransactionAccess, dialect: Dialect, tables: readonly Table[], clocks: AccountClocks
): Transaction {
  const statements = createStatements(connection)
  const owners = new Map<string, Map<number, number>>()
  return {
    dialect,
    tables,
    ...createTimes(clocks),
    ...statements,
    ...createIds(dialect, statements.query),
    insert (table, rows) {
      statements.defer((parameter) => insertSql(dialect, table, parameter), rows)
    },
    owners ({ name }) {
      const known = owners.get(name) ?? new Map<number, number>()
      owners.set(name, known)
      return known
    },
    async prisma () {
      await statements.flush()
      return prisma()
    }
  }
}

type Statements = Pick<Transaction, 'query' | 'execute' | 'defer' | 'flush' | 'queryWithDeferred'>

/** Returns functions that run statements of a transaction, each after the writes that were deferred before it. */
function createStatements (connection: Connection): Statements {
  let deferred: DeferredWrite[] = []

  function drainDeferred (): DeferredWrite[] {
    const drained = deferred
    deferred = []
    return drained
  }

  async function flush (): Promise<void> {
    for (const { sql, inputs } of drainDeferred()) await executeStatement(connection, sql(1), inputs)
  }

  return {
    flush,
    async query<Row> (sql: string, ...inputs: Array<readonly object[]>) {
      await flush()
      return await queryRows<Row>(connection, sql, inputs)
    },
    async execute (sql, inputs) {
      if (inputs.length === 0) return
      await flush()
      await executeStatement(connection, sql, inputs)
    },
    defer (sql, inputs) {
      if (inputs.length > 0) deferred.push({ sql, inputs })
    },
    async queryWithDeferred<Row> (sql: SqlAfterWrites, ...inputs: Array<readonly object[]>) {
      // In one order always: a statement's text is prepared once, and the same writes are deferred in any order.
      const writes = drainDeferred().map((write) => ({ ...write, text: write.sql(1) }))
        .sort((a, b) => a.text < b.text ? -1 : 1)
      const names = writes.map((_, i) => `written_${i + 1}`)
      const written = ['true', ...names.map((name) => `(SELECT count(*) FROM ${name}) >= 0`)].join(' AND ')
      const { with: parts, select } = sql(writes.length + 1, written)
      const ctes = [...writes.map((write, i) => `${names[i]} AS (${write.sql(i + 1)} RETURNING 1)`), ...parts]
      const parameters = [...writes.map((write) => write.inputs), ...inputs]
      return await queryRows<Row>(connection, `WITH ${ctes.join(', ')} ${select}`, parameters)
    }
  }
}

type Ids = Pick<Transaction, 'allocateIds' | 'allocateIdRanges' | 'addAllocatedIds'>

/** Returns functions that allocate ids, with the ids that are allocated already. */
function createIds (dialect: Dialect, query: Transaction['query']): Ids {
  const allocated = new Map<string, number[]>()

  async function allocateIdRanges ({ name, id }: Table, count: number): Promise<IdRange[]> {
    // SQLite would allocate them a second time.
    allocated.delete(name)
    const input = dialect.jsonRows('i', { count: 'bigint' })
    const ranges = await query<IdRange>(dialect.allocateIds(name, id, input), [{ count }])
    return ranges.sort((a, b) => a.first - b.first)
  }

  return {
    allocateIdRanges,
    async allocateIds (table, count) {
      const ready = allocated.get(table.name) ?? []
      return ready.length >= count ? ready.splice(0, count) : (await allocateIdRanges(table, count)).flatMap(idsOf)
    },
    addAllocatedIds ({ name }, ids) {
      allocated.set(name, [...allocated.get(name) ?? [], ...ids])
    }
  }
}

type Times = Pick<Transaction, 'startedAt' | 'now' | 'clockOffset' | 'advanceClock' | 'confirmClock'>

/** Returns the times of a transaction that begins now. */
function createTimes (clocks: AccountClocks): Times {
  const startedMs = Date.now()
  const startedAt = new Date(startedMs).toISOString()
  /** The clocks that this transaction moved. Other transactions see them after COMMIT. */
  const advanced = new Map<number, number>()
  const clockOffset = (account: number | null): number => advanced.get(account ?? 0) ?? clocks.offsetOf(account)
  return {
    startedAt,
    clockOffset,
    now (account) {
      const offset = clockOffset(account)
      return offset === 0 ? startedAt : timeText(startedMs + offset)
    },
    advanceClock (account, offsetMs) {
      advanced.set(account, offsetMs)
    },
    confirmClock (account, offsetMs) {
      if (offsetMs === clockOffset(account)) return
      clocks.advance(account, offsetMs)
      throw new ClockAdvanced('the clock of an account was moved by another process')
    }
  }
}

export function idsOf ({ first, last }: IdRange): number[] {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i)
}

/** Returns the inputs without repetitions: a row that several commands ask for is loaded once. */
export function distinct<Input extends object> (inputs: Input[]): Input[] {
  return [...new Map(inputs.map((input) => [JSON.stringify(input), input])).values()]
}

/** Handles the inputs of a command one after the other, each after the effects of those before it. */
export async function inSequence<Input, Result> (
  inputs: Input[], handle: (input: Input) => Promise<Result>
): Promise<Result[]> {
  const results: Result[] = []
  for (const input of inputs) results.push(await handle(input))
  return results
}
