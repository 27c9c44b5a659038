import { statementOf, withReferences, type Steps } from '../steps.ts'

/** Returns the rows of a statement. */
type Run = (sql: string, values: readonly unknown[]) => object[]

/** Steps as statements: plain objects, which can be sent to a thread. */
export interface StepStatements {
  statements: Array<{
    name: string
    sql: string
    /** The inputs and the columns of earlier steps that are its parameters. */
    parameters: string[]
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

/** A `StepStatements` with its input. */
export interface StepRun {
  steps: StepStatements
  input: object
}

/** Runs steps within a transaction. @returns `undefined` if one has no row */
export function runSteps ({ steps: { statements, result }, input }: StepRun, run: Run): object | undefined {
  const values: Record<string, unknown> = { ...input }
  let found: object | undefined
  for (const { name, sql, parameters } of statements) {
    const [row] = run(sql, parameters.map((parameter) => values[parameter]))
    if (row === undefined) return undefined
    for (const [column, value] of Object.entries(row)) values[`${name}.${column}`] = value
    if (name === result) found = row
  }
  return found
}

function buildStatements ({ shared, inputs, steps, result }: Steps): StepStatements {
  const types = new Map(Object.entries({ ...shared, ...inputs }))
  const statements = steps.map((step) => {
    const { name, columns } = step
    const parameters: string[] = []
    const parameter = (reference: string): string => {
      parameters.push(reference)
      // The driver binds numbers as floats.
      return types.get(reference) === 'bigint' ? 'CAST(? AS integer)' : '?'
    }
    const sql = withReferences(statementOf(step), parameter, (step, column) => parameter(`${step}.${column}`))
    for (const [column, type] of Object.entries(columns)) types.set(`${name}.${column}`, type)
    return { name, sql, parameters }
  })
  return { statements, result }
}
