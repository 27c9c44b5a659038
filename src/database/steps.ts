import type { InputType } from './dialect.ts'

/**
 * Statements that run one after the other for an input. Each finds or writes one row. If a step has no row, the later
 * ones have none either; each step behind the first that writes must have a row.
 */
export interface Steps {
  /** The types of the inputs. */
  inputs: Types
  steps: Step[]
  /** The name of the step whose row is returned. */
  result: string
  /** The input that identifies the row which the steps update. */
  updates?: string | undefined
}

/**
 * Its SQL can have references: `@name` is an input, and `@step.column` a column of the row of an earlier step. Columns
 * are named with their table.
 */
export type Step = Find | Compute | Update | Increment | Insert

interface CommonStep {
  name: string
  /** The columns of its row. */
  columns: Types
}

/** Finds a row by its id, if it meets a condition. */
interface Find extends CommonStep {
  find: string
  id: RowId
  where: string
  /** Locks the row. A row that another transaction has locked is not found. */
  lock?: 'key share' | 'update'
}

/** Computes a row without a table. */
interface Compute extends CommonStep {
  /** The expressions of its columns. */
  compute: { [column: string]: string }
}

interface Update extends CommonStep {
  update: string
  id: RowId
  set: string
  where: string
}

/** Adds 1 to the only one of its `columns`. */
interface Increment extends CommonStep {
  increment: string
  /** The input that is the `id` of the row. */
  id: string
}

/** The column that identifies a row, and its value. */
type RowId = [column: string, value: string]

interface Insert extends CommonStep {
  insert: string
  /** The expressions by column. If a column of its row is not among them, it is an id that the database chooses. */
  values: { [column: string]: string }
}

type Types = { [name: string]: InputType }

export interface StepsRun { steps: Steps, input: object }

/**
 * Runs steps for each input, in one transaction. Returns the row of each `result`, or `undefined` for an input that has
 * written nothing. Runs nothing and returns `undefined` if that would take more than a few statements.
 */
export type CommitSteps = (runs: readonly StepsRun[]) => Promise<Array<object | undefined>> | undefined

const REFERENCE = /@(\w+)(?:\.(\w+))?/g

/** Replaces the references in the SQL of a step by SQL expressions. */
export function withReferences (
  sql: string, inputOf: (name: string) => string, columnOf: (step: string, column: string) => string
): string {
  return sql.replace(REFERENCE, (_text, name: string, column: string | undefined) =>
    column === undefined ? inputOf(name) : columnOf(name, column))
}

/** Returns an SQL expression for a text that contains references. */
export function textWithReferences (text: string): string {
  return `'${text.replaceAll("'", "''").replace(REFERENCE, "' || $& || '")}'`
}

/** Returns the statement of a step for one input, which has references. It does nothing if the condition is not met. */
export function statementOf (step: Step, condition = 'true'): string {
  const columns = Object.keys(step.columns)
  const returning = `RETURNING ${columns.join(', ')}`
  if ('find' in step) {
    const { find, id: [id, value], where } = step
    return `SELECT ${columns.join(', ')} FROM ${find} WHERE ${id} = ${value} AND ${where} AND ${condition}`
  }
  if ('compute' in step) {
    const values = Object.entries(step.compute).map(([column, value]) => `${value} AS ${column}`)
    return `SELECT ${values.join(', ')} WHERE ${condition}`
  }
  if ('update' in step) {
    const { update, id: [id, value], set, where } = step
    return `UPDATE ${update} SET ${set} WHERE ${id} = ${value} AND ${where} AND ${condition} ${returning}`
  }
  if ('increment' in step) {
    const { increment, id } = step
    return `UPDATE ${increment} SET ${columns[0]} = ${columns[0]} + 1 WHERE id = @${id} AND ${condition} ${returning}`
  }
  const { insert, values } = step
  return `
    INSERT INTO ${insert} (${Object.keys(values).join(', ')})
    SELECT ${Object.values(values).join(', ')} WHERE ${condition} ${returning}`
}
