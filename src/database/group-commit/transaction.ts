import { timeText, type AccountClocks } from '../account-clocks.ts'
import type { Dialect } from '../dialect.ts'
import { completeRow, idOf, type Table } from '../table.ts'
import { queryRows, type Run } from '../statements.ts'
import type { AccountRows } from '../unit-of-work/account-rows.ts'
import { insertSql } from '../unit-of-work/row-statements.ts'
import type { StoredBytes } from '../unit-of-work/stored-bytes.ts'

/** One database transaction, shared by all commands of a group. */
export type Transaction = ReturnType<typeof createTransaction>

export function createTransaction (
  run: Run, dialect: Dialect, tables: readonly Table[], times: Times, storedBytes: StoredBytes,
  rows: (account: number) => AccountRows
) {
  const query = async <Row>(sql: string, ...inputs: Array<readonly object[]>): Promise<Row[]> =>
    await queryRows<Row>(run, sql, inputs.map((list) => JSON.stringify(list)))
  const execute = async (sql: string, inputs: readonly object[]): Promise<void> => {
    if (inputs.length > 0) await query(sql, inputs)
  }
  return {
    dialect,
    /** All tables of accounts, in registration order. */
    tables,
    /** Gets what the transaction adds to the bytes that its accounts store, or takes away. */
    storedBytes,
    /**
     * Returns the rows of an account that commands have declared, and saves their changes at the end of the
     * transaction. An account that was deleted has none.
     */
    rows,
    ...times,
    /** Runs statements, and returns the rows of each. */
    run,
    /** Runs a statement whose parameters are JSON arrays of inputs, and returns its rows. */
    query,
    /** Runs a statement with one parameter, a JSON array of inputs. Does nothing without inputs. */
    execute,
    /** Returns ids for new rows, ascending. */
    allocateIds: async (table: Table, count: number): Promise<number[]> =>
      idsOf(await queryRows<IdRange>(run, dialect.newIds(table.name, idOf(table)), [count])),
    /** Inserts rows with allocated ids. Fields without a value get the default of the model, or null. */
    insert: async <Row extends object>(table: Table<Row>, rows: ReadonlyArray<Partial<Row>>): Promise<void> => {
      // All columns, so that a table has one statement.
      const sql = insertSql(dialect, table, Object.keys(table.columns))
      await execute(sql, rows.map((row) => completeRow(table, row)))
    }
  }
}

export type Times = ReturnType<typeof createTimes>

/**
 * Returns the times of a transaction that begins now.
 *
 * @param locked the accounts that are locked, and how far their clocks are ahead, in ms
 */
export function createTimes (clocks: AccountClocks, locked: ReadonlyMap<number, number>) {
  const startedMs = Date.now()
  const startedAt = new Date(startedMs).toISOString()
  /** The clocks that this transaction relies on, or has moved itself. A move by another one does not change them. */
  const offsets = new Map(locked)
  const clockOffset = (account: number | null): number => {
    if (account === null) return 0
    const offset = offsets.get(account) ?? clocks.offsetOf(account)
    offsets.set(account, offset)
    return offset
  }
  return {
    /** When the group began, in real time: RFC 3339 in UTC with milliseconds. */
    startedAt,
    /** Returns how far the clock of an account is ahead, in ms. */
    clockOffset,
    /** Returns when the group began by the clock of an account, or some ms later: the time of all its changes. */
    now: (account: number | null, ms = 0): string => {
      const offset = clockOffset(account) + ms
      return offset === 0 ? startedAt : timeText(startedMs + offset)
    },
    /** Tells the clock of an account that the transaction has moved, or locked by a statement of its own. */
    advanceClock: (account: number, offsetMs: number): void => { offsets.set(account, offsetMs) }
  }
}

/** Ids without gaps. */
export interface IdRange { first: number, last: number }

/** Returns the ids of ranges. */
export function idsOf (ranges: readonly IdRange[]): number[] {
  return ranges.flatMap(({ first, last }) => Array.from({ length: last - first + 1 }, (_, i) => first + i))
}

/** Returns the inputs without repetitions: a row that several commands ask for is loaded once. */
export function distinct<Input extends object> (inputs: Input[]): Input[] {
  return [...new Map(inputs.map((input) => [JSON.stringify(input), input])).values()]
}
