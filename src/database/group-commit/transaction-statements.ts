import type { OwnStatement, Run } from '../statements.ts'

/** The statements of a transaction. Each runs after the writes that were deferred before it. */
export interface Statements {
  /** Runs a statement whose parameters are JSON arrays of inputs, and returns its rows. */
  query: <Row>(sql: string, ...inputs: Array<readonly object[]>) => Promise<Row[]>
  /** Runs a statement with one parameter, a JSON array of inputs. Does nothing without inputs. */
  execute: (sql: string, inputs: readonly object[]) => Promise<void>
  /** Defers a write until the next statement: where a statement costs a round trip, both travel together. */
  defer: (statement: OwnStatement) => void
  /** Runs statements, and returns the rows of each. */
  run: Run
  /** Runs all deferred writes. */
  flush: () => Promise<void>
}

export function createStatements (send: Run): Statements {
  let deferred: OwnStatement[] = []

  async function run (statements: readonly OwnStatement[]): Promise<object[][]> {
    const writes = deferred
    deferred = []
    return (await send([...writes, ...statements])).slice(writes.length)
  }

  return {
    run,
    async flush () {
      if (deferred.length > 0) await run([])
    },
    query: async <Row>(sql: string, ...inputs: Array<readonly object[]>) =>
      (await run([statementOf(sql, inputs)]))[0] as Row[],
    async execute (sql, inputs) {
      if (inputs.length > 0) await run([statementOf(sql, [inputs])])
    },
    defer (statement) {
      deferred.push(statement)
    }
  }
}

/** Each input is one parameter: a JSON array of objects. */
function statementOf (sql: string, inputs: ReadonlyArray<readonly object[]>): OwnStatement {
  return { sql, values: inputs.map((list) => JSON.stringify(list)) }
}
