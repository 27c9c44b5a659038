import type { InputType } from './dialect.ts'

/**
 * Statements that run one after the other. Each finds or writes one row. If a step has no row, the later ones have none
 * either; each step behind the first that writes must have a row.
 */
export interface Steps {
  /** The types of the inputs. */
  inputs: Types
  steps: Step[]
  /** The name of the step whose row is returned. */
  result: string
}

export interface Step {
  name: string
  /**
   * A statement that ends with its WHERE clause: a SELECT, or one that writes. It can have references: `@name` is an
   * input, and `@step.column` a column of the row of an earlier step.
   */
  sql: string
  /** The columns of its row, of the table that it writes. */
  columns: Types
  /** Locks the row that it finds. A row that another transaction has locked is not found. */
  lock?: 'key share' | 'update'
}

type Types = { [name: string]: InputType }

/**
 * Runs steps for each input, in one transaction. Returns the row of each `result`, or `undefined` for an input that has
 * written nothing.
 */
export type CommitSteps = (runs: ReadonlyArray<{ steps: Steps, input: object }>) => Promise<Array<object | undefined>>

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

/** Returns whether a step only finds a row. */
export function isQuery (sql: string): boolean {
  return /^\s*SELECT\b/.test(sql)
}
