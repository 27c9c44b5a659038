import type { InputType } from './dialect.ts'
import { nextVersionSql } from './entity-tag.ts'

/**
 * Statements that run one after the other for an input. Each finds or writes one row. If a step has no row, the later
 * ones have none either; each step behind the first that writes must have a row.
 */
export interface Steps {
  /** The types of the inputs that runs can share. */
  shared: Types
  /** The types of the other inputs. */
  inputs: Types
  /** The first depends on shared inputs only, and decides for all runs that share them. No other step reads its row. */
  steps: [Find, ...Step[]]
  /** The name of the step whose row is returned. */
  result: string
}

/**
 * Its SQL can have references: `@name` is an input, and `@step.column` a column of the row of an earlier step. Columns
 * are named with their table.
 */
export type Step = Find | Compute | Add | Insert

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

/**
 * Adds an amount to the only one of its `columns`, in a row that exists. Inputs with the same row add to it one after
 * the other. Unless an earlier step returns the id, which has locked the row then, rows are locked in the order of ids.
 */
interface Add extends CommonStep {
  add: string
  id: RowId
  amount: string
  /** If all inputs together would leave less, none of them has a row. */
  minimum?: number
  /** Each input makes a new version of the row. */
  isVersioned?: true
}

/** The column that identifies a row, and its value. */
type RowId = [column: string, value: string]

interface Insert extends CommonStep {
  insert: string
  /** The expressions by column. If a column of its row is not among them, it is an id that the database chooses. */
  values: { [column: string]: string }
}

export type Types = { [name: string]: InputType }

export interface StepsRun {
  steps: Steps
  /** The same object in all runs that share it. */
  shared: object
  input: object
}

/**
 * Runs steps for each input, in one transaction. Returns the row of each `result`, or `undefined` for an input that has
 * written nothing.
 */
export type CommitSteps = (runs: readonly StepsRun[]) => Promise<Array<object | undefined>>

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
  if ('add' in step) {
    const { add, id: [id, value], amount } = step
    const { set, where } = addition(step, amount, '1')
    return `UPDATE ${add} SET ${set} WHERE ${id} = ${value} AND ${where} AND ${condition} ${returning}`
  }
  const { insert, values } = step
  return `
    INSERT INTO ${insert} (${Object.keys(values).join(', ')})
    SELECT ${Object.values(values).join(', ')} WHERE ${condition} ${returning}`
}

/** Returns how `count` inputs change a row by an amount, and the condition for it. */
export function addition (
  { add, columns, minimum, isVersioned }: Add, amount: string, count: string
): { set: string, where: string } {
  const [column] = Object.keys(columns)
  const sum = `${add}.${column} + ${amount}`
  const version = `version = ${nextVersionSql(`${add}.version`, `${add}.version_floor`)} + ${count} - 1`
  return {
    set: `${column} = ${sum}${isVersioned === true ? `, ${version}` : ''}`,
    where: minimum === undefined ? 'true' : `${sum} >= ${minimum}`
  }
}
