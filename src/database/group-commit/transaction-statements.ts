import { queryRows, type Connection, type OwnStatement } from '../statements.ts'

type Inputs = ReadonlyArray<readonly object[]>

/** The statements of a transaction. Each runs after the writes that were deferred before it. */
export interface Statements {
  /** Runs a statement whose parameters are JSON arrays of inputs, and returns its rows. */
  query: <Row>(sql: string, ...inputs: Array<readonly object[]>) => Promise<Row[]>
  /** Runs a statement with one parameter, a JSON array of inputs. Does nothing without inputs. */
  execute: (sql: string, inputs: readonly object[]) => Promise<void>
  /**
   * Defers a write until the next statement, or until the commit hook, where PostgreSQL runs all deferred writes in
   * one statement. Two deferred writes must not touch the same row.
   */
  defer: (sql: WriteSql, inputs: readonly object[]) => void
  /** Runs a statement in one with all deferred writes. Needs a dialect that supports writable CTEs. */
  queryWithDeferred: <Row>(sql: SqlAfterWrites, ...inputs: Array<readonly object[]>) => Promise<Row[]>
  /**
   * As `queryWithDeferred`, and commits in the same round trip: no statement can follow, and a failed one commits
   * nothing.
   */
  queryAndCommit: <Row>(sql: SqlAfterWrites, ...inputs: Array<readonly object[]>) => Promise<Row[]>
  /**
   * Names the statement that follows the next one, whatever that returns. Where a statement costs a round trip, both
   * travel together. `query` with the same statement then returns its rows.
   */
  prefetch: (sql: string, ...inputs: Array<readonly object[]>) => void
  /** Runs all deferred writes. */
  flush: () => Promise<void>
  /** Ends the transaction, unless it has ended: runs all deferred writes, and commits in the same round trip. */
  flushAndCommit: () => Promise<void>
}

/** A statement that reads its inputs from the parameter with this number. */
export type WriteSql = (parameter: number) => string

/** A statement behind deferred writes: `written` is a condition that is true once they are done. */
export type SqlAfterWrites = (parameter: number, written: string) => { with: string[], select: string }

export function createStatements (connection: Connection): Statements {
  let deferred: Array<{ sql: WriteSql, inputs: readonly object[] }> = []
  /** Travels behind the next query. */
  let behind: OwnStatement | undefined
  /** What travelled behind the last statement. Any other statement may change its rows. */
  let prefetched: { statement: OwnStatement, rows: object[] } | undefined
  let isCommitted = false

  async function run (statements: OwnStatement[]): Promise<object[][]> {
    prefetched = undefined
    if (connection.runTogether !== undefined) return await connection.runTogether(statements)
    const results: object[][] = []
    for (const { sql, values } of statements) results.push(await queryRows<object>(connection, sql, values))
    return results
  }

  function drainDeferred (): typeof deferred {
    const drained = deferred
    deferred = []
    return drained
  }

  function deferredStatements (): OwnStatement[] {
    return drainDeferred().map(({ sql, inputs }) => statementOf(sql(1), [inputs]))
  }

  /** Returns a statement in one with all deferred writes. */
  function withDeferred (sql: SqlAfterWrites, inputs: Inputs): OwnStatement {
    // In one order always: a statement's text is prepared once, and the same writes are deferred in any order.
    const writes = drainDeferred().map((write) => ({ ...write, text: write.sql(1) }))
      .sort((a, b) => a.text < b.text ? -1 : 1)
    const names = writes.map((_, i) => `written_${i + 1}`)
    const written = ['true', ...names.map((name) => `(SELECT count(*) FROM ${name}) >= 0`)].join(' AND ')
    const { with: parts, select } = sql(writes.length + 1, written)
    const ctes = [...writes.map((write, i) => `${names[i]} AS (${write.sql(i + 1)} RETURNING 1)`), ...parts]
    return statementOf(`WITH ${ctes.join(', ')} ${select}`, [...writes.map((write) => write.inputs), ...inputs])
  }

  async function runAndCommit (statements: OwnStatement[]): Promise<object[][]> {
    const results = await connection.runAndCommit!(statements)
    isCommitted = true
    return results
  }

  async function flush (): Promise<void> {
    prefetched = undefined
    if (deferred.length > 0) await run(deferredStatements())
  }

  return {
    flush,
    async flushAndCommit () {
      // Without round trips, the caller of the transaction commits.
      if (connection.runAndCommit === undefined) await flush()
      else if (!isCommitted) await runAndCommit(deferredStatements())
    },
    async query<Row> (sql: string, ...inputs: Inputs) {
      const statement = statementOf(sql, inputs)
      if (prefetched !== undefined && deferred.length === 0 && isSame(prefetched.statement, statement)) {
        const { rows } = prefetched
        prefetched = undefined
        return rows as Row[]
      }
      const writes = deferredStatements()
      const next = behind
      behind = undefined
      const results = await run([...writes, statement, ...next === undefined ? [] : [next]])
      if (next !== undefined) prefetched = { statement: next, rows: results.at(-1)! }
      return results[writes.length] as Row[]
    },
    prefetch (sql, ...inputs) {
      behind = statementOf(sql, inputs)
    },
    async execute (sql, inputs) {
      if (inputs.length > 0) await run([...deferredStatements(), statementOf(sql, [inputs])])
    },
    defer (sql, inputs) {
      if (inputs.length > 0) deferred.push({ sql, inputs })
    },
    async queryWithDeferred<Row> (sql: SqlAfterWrites, ...inputs: Inputs) {
      return (await run([withDeferred(sql, inputs)]))[0] as Row[]
    },
    async queryAndCommit<Row> (sql: SqlAfterWrites, ...inputs: Inputs) {
      return (await runAndCommit([withDeferred(sql, inputs)]))[0] as Row[]
    }
  }
}

/** Each input is one parameter: a JSON array of objects. */
function statementOf (sql: string, inputs: Inputs): OwnStatement {
  return { sql, values: inputs.map((list) => JSON.stringify(list)) }
}

function isSame (a: OwnStatement, b: OwnStatement): boolean {
  return a.sql === b.sql && a.values.length === b.values.length && a.values.every((value, i) => value === b.values[i])
}
