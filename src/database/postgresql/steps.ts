import type { OwnStatement } from '../statements.ts'
import { statementOf, withReferences, type CommitSteps, type Step, type Steps, type StepsRun } from '../steps.ts'
import { postgresql } from './dialect.ts'
import { BEGIN, COMMIT } from './statement-batch.ts'

/** More statements than this run slower than commands, which decide about all rows at once. */
const MAX_STATEMENTS = 8

const LOCKS = { 'key share': 'FOR KEY SHARE SKIP LOCKED', update: 'FOR UPDATE SKIP LOCKED' }

/**
 * Returns a function that runs the steps of all inputs in one statement, and commits in the same round trip. Inputs
 * that update the same row take statements of their own.
 */
export function createCommitSteps (runTogether: (statements: OwnStatement[]) => Promise<object[][]>): CommitSteps {
  return (runs) => {
    const parts = partsOf(runs)
    return parts === undefined ? undefined : runParts(parts, runs.length)
  }

  async function runParts (parts: Part[], count: number): Promise<Array<object | undefined>> {
    const locks = lockStatements(parts)
    const results = await runTogether([BEGIN, ...locks, ...parts.map(statementOfPart), COMMIT])
    const rows = Array<object | undefined>(count).fill(undefined)
    for (const [i, { positions }] of parts.entries()) {
      for (const row of results[1 + locks.length + i] as Array<{ ordinal?: number }>) {
        rows[positions[(row.ordinal ?? 1) - 1]!] = row
      }
    }
    return rows
  }
}

/** Inputs that share a statement. */
interface Part {
  steps: Steps
  inputs: Array<Record<string, unknown>>
  /** Their positions among all inputs. */
  positions: number[]
  /** The rows that they update. */
  updated: Set<unknown>
}

/** Returns `undefined` if there are too many. */
function partsOf (runs: readonly StepsRun[]): Part[] | undefined {
  const parts: Part[] = []
  for (const [position, { steps, input }] of runs.entries()) {
    const members = input as Part['inputs'][number]
    const updated = steps.updates === undefined ? undefined : members[steps.updates]
    let part = parts.find((part) => part.steps === steps && (updated === undefined || !part.updated.has(updated)))
    if (part === undefined) {
      if (parts.length === MAX_STATEMENTS) return undefined
      part = { steps, inputs: [], positions: [], updated: new Set() }
      parts.push(part)
    }
    part.inputs.push(members)
    part.positions.push(position)
    part.updated.add(updated)
  }
  return parts
}

function statementOfPart ({ steps, inputs }: Part): OwnStatement {
  if (inputs.length > 1) return { sql: textForSeveral(steps), values: [JSON.stringify(inputs)] }
  return { sql: textForOne(steps), values: Object.keys(steps.inputs).map((name) => inputs[0]![name]) }
}

/** Locks the rows that several inputs increment in the order of their ids, as all transactions do. */
function lockStatements (parts: Part[]): OwnStatement[] {
  const ids = new Map<string, Set<unknown>>()
  for (const { steps: { steps }, inputs } of parts) {
    for (const step of steps) {
      if (!('increment' in step)) continue
      const { increment, id } = step
      const rows = ids.get(increment) ?? new Set()
      ids.set(increment, rows)
      for (const input of inputs) rows.add(input[id])
    }
  }
  const wanted = `SELECT i.id FROM ${postgresql.jsonRows('i', { id: 'bigint' })}`
  return [...ids].filter(([, rows]) => rows.size > 1).map(([table, rows]) => ({
    sql: `SELECT t.id ${postgresql.fromByIds(table, 't', 'id', wanted)} ORDER BY t.id FOR NO KEY UPDATE`,
    values: [JSON.stringify(Array.from(rows, (id) => ({ id })))]
  }))
}

/** A step waits for the one before it, because it reads whether that has a row. */
const textForOne = oncePerSteps(({ inputs, steps, result }) => {
  const parameters = new Map(Object.entries(inputs).map(([name, type], i) => [name, `CAST($${i + 1} AS ${type})`]))
  const ctes = steps.map((step, i) => {
    const statement = statementOf(step, i === 0 ? 'true' : `EXISTS (SELECT 1 FROM ${steps[i - 1]!.name})`)
    const columnOf = (step: string, column: string): string => `(SELECT ${column} FROM ${step})`
    const text = withReferences(statement, (name) => parameters.get(name)!, columnOf)
    return `${step.name} AS ${'find' in step || 'compute' in step ? 'MATERIALIZED' : ''} (${text} ${lockOf(step)})`
  })
  return `WITH ${ctes.join(', ')} SELECT * FROM ${result}`
})

function lockOf (step: Step): string {
  return 'find' in step && step.lock !== undefined ? LOCKS[step.lock] : ''
}

const textForSeveral = oncePerSteps(({ inputs, steps, result }) => {
  const rows = postgresql.jsonRows('i', { ...inputs, ordinal: 'ordinality' })
  const ctes = steps.flatMap((step, i) => ctesOf(step, i === 0 ? 'inputs' : steps[i - 1]!.name))
  const columns = Object.keys(steps.find(({ name }) => name === result)!.columns)
  return `
    WITH inputs AS MATERIALIZED (SELECT * FROM ${rows}), ${ctes.join(', ')}
    SELECT ordinal, ${columns.map((column) => `"${result}.${column}" AS ${column}`).join(', ')} FROM ${result}`
})

/** Returns the part of the statement for a step: it adds its columns to the rows of the step before it. */
function ctesOf (step: Step, before: string): string[] {
  const { name } = step
  const columns = Object.keys(step.columns)
  const added = (valueOf: (column: string) => string): string =>
    columns.map((column) => `${valueOf(column)} AS "${name}.${column}"`).join(', ')
  const resolve = (sql: string): string =>
    withReferences(sql, (input) => `b."${input}"`, (step, column) => `b."${step}.${column}"`)

  if ('find' in step) {
    const { find, id: [id, value], where } = step
    // As a plain join, a planner could read the whole table.
    return [`${name} AS MATERIALIZED (
      SELECT b.*, ${added((column) => `found.${column}`)} FROM ${before} AS b JOIN LATERAL (
        SELECT ${columns.join(', ')} FROM ${find} WHERE ${find}.${id} = ${resolve(value)} AND ${resolve(where)}
        OFFSET 0 ${lockOf(step)}
      ) AS found ON true)`]
  }
  if ('compute' in step) {
    return [`${name} AS MATERIALIZED (
      SELECT b.*, ${added((column) => resolve(step.compute[column]!))} FROM ${before} AS b)`]
  }
  if ('update' in step) {
    const { update, id: [id, value], set, where } = step
    return [`${name} AS (
      UPDATE ${update} SET ${resolve(set)} FROM ${before} AS b
      WHERE ${update}.${id} = ANY (ARRAY(SELECT ${resolve(value)} FROM ${before} AS b))
        AND ${update}.${id} = ${resolve(value)} AND ${resolve(where)}
      RETURNING b.*, ${added((column) => `${update}.${column}`)})`]
  }
  if ('increment' in step) {
    const { increment, id } = step
    const [column] = columns
    return [`${name}_rows AS (
      UPDATE ${increment} SET ${column} = ${increment}.${column} + n.count
      FROM (SELECT b."${id}" AS id, count(*) FROM ${before} AS b GROUP BY b."${id}") AS n
      WHERE ${increment}.id = ANY (ARRAY(SELECT b."${id}" FROM ${before} AS b)) AND ${increment}.id = n.id
      RETURNING ${increment}.id, ${increment}.${column})`, `
    ${name} AS MATERIALIZED (
      SELECT b.*, ${added((column) => `r.${column} + 1 - row_number() OVER (PARTITION BY r.id ORDER BY b.ordinal DESC)`)}
      FROM ${before} AS b JOIN ${name}_rows AS r ON r.id = b."${id}")`]
  }
  const { insert, values } = step
  const choosesId = columns.some((column) => !(column in values))
  const inserted = { ...values, ...Object.fromEntries(columns.map((column) => [column, `@${name}.${column}`])) }
  return [`${name} AS ${choosesId ? '' : 'NOT'} MATERIALIZED (
    SELECT b.*, ${added((column) => column in values ? resolve(values[column]!) : postgresql.nextId(insert, column))}
    FROM (SELECT * FROM ${before} ${choosesId ? 'ORDER BY ordinal' : ''}) AS b)`, `
  ${name}_rows AS (
    INSERT INTO ${insert} (${Object.keys(inserted).join(', ')})
    SELECT ${Object.values(inserted).map(resolve).join(', ')} FROM ${name} AS b)`]
}

function oncePerSteps (build: (steps: Steps) => string): (steps: Steps) => string {
  const known = new WeakMap<Steps, string>()
  return (steps) => {
    let text = known.get(steps)
    if (text === undefined) {
      text = build(steps)
      known.set(steps, text)
    }
    return text
  }
}
