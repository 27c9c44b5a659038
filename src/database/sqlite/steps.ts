import { statementOf, withReferences, type Steps, type Types } from '../steps.ts'

/** Returns the rows of a statement. */
type Run = (sql: string, values: readonly unknown[]) => object[]

/** Steps as statements: plain objects, which can be sent to a thread. */
export interface StepStatements {
  statements: Array<{
    name: string
    sql: string
    /** Its parameters: each is an input, or a column of the row of an earlier step. */
    parameters: Array<[source: 'shared' | 'input' | (string & {}), name: string]>
  }>
  result: string
}

const known = new WeakMap<Steps, StepStatements>()

export function statementsOf (steps: Steps): StepStatements {
  let statements = known.get(steps)
  if (statements === undefined) {
    statements = buildStatements(steps)
    known.set(steps, statements)
  }
  return statements
}

/** A `StepStatements` with its inputs. */
export interface StepRun {
  steps: StepStatements
  shared: object
  input: object
}

/** Runs steps within a transaction. @returns `undefined` if one has no row */
export function runSteps ({ steps: { statements, result }, shared, input }: StepRun, run: Run): object | undefined {
  const sources: Record<string, object> = { shared, input }
  for (const { name, sql, parameters } of statements) {
    const [row] = run(sql, parameters.map(([source, name]) => (sources[source] as Record<string, unknown>)[name]))
    if (row === undefined) return undefined
    sources[name] = row
  }
  return sources[result]
}

function buildStatements ({ shared, inputs, steps, result }: Steps): StepStatements {
  const types: Record<string, Types> = { shared, input: inputs }
  const statements = steps.map((step) => {
    const { name, columns } = step
    const parameters: StepStatements['statements'][0]['parameters'] = []
    const parameter = (source: string, name: string): string => {
      parameters.push([source, name])
      // The driver binds numbers as floats.
      return types[source]![name] === 'bigint' ? 'CAST(? AS integer)' : '?'
    }
    const input = (name: string): string => parameter(name in shared ? 'shared' : 'input', name)
    const sql = withReferences(statementOf(step), input, parameter)
    types[name] = columns
    return { name, sql, parameters }
  })
  return { statements, result }
}
