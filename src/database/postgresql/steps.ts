import type { OwnStatement } from '../statements.ts'
import {
  addition, statementOf, withReferences, type CommitSteps, type Step, type Steps, type StepsRun
} from '../steps.ts'
import { postgresql } from './dialect.ts'
import { BEGIN, COMMIT } from './statement-batch.ts'

const LOCKS = { 'key share': 'FOR KEY SHARE SKIP LOCKED', update: 'FOR UPDATE SKIP LOCKED' }

/** Returns a function that runs steps in one round trip. All inputs of the same steps share a statement. */
export function createCommitSteps (runTogether: (statements: OwnStatement[]) => Promise<object[][]>): CommitSteps {
  return async (runs) => {
    const parts = partsOf(runs)
    const locks = lockStatements(parts)
    const results = await runTogether([BEGIN, ...locks, ...parts.map(statementOfPart), COMMIT])
    const rows = Array<object | undefined>(runs.length).fill(undefined)
    for (const [i, { positions }] of parts.entries()) {
      for (const row of results[1 + locks.length + i] as Array<{ ordinal?: number }>) {
        rows[positions[(row.ordinal ?? 1) - 1]!] = row
      }
    }
    return rows
  }
}

type Values = Record<string, unknown>

/** Inputs that share a statement. */
interface Part {
  steps: Steps
  shared: Values[]
  inputs: Values[]
  /** The positions of the inputs among all inputs. */
  positions: number[]
}

function partsOf (runs: readonly StepsRun[]): Part[] {
  const parts = new Map<Steps, Part>()
  for (const [position, { steps, shared, input }] of runs.entries()) {
    const part = parts.get(steps) ?? { steps, shared: [], inputs: [], positions: [] }
    parts.set(steps, part)
    let place = part.shared.indexOf(shared as Values)
    if (place === -1) place = part.shared.push(shared as Values) - 1
    part.inputs.push({ ...input, place: place + 1 })
    part.positions.push(position)
  }
  return [...parts.values()]
}

function statementOfPart ({ steps, shared, inputs }: Part): OwnStatement {
  if (inputs.length > 1) return { sql: textForSeveral(steps), values: [JSON.stringify(shared), JSON.stringify(inputs)] }
  const values: Values = { ...shared[0], ...inputs[0] }
  const names = Object.keys({ ...steps.shared, ...steps.inputs })
  return { sql: textForOne(steps), values: names.map((name) => values[name]) }
}

/**
 * Locks the rows to which the inputs add in the order of their ids, as all transactions do. An earlier step has locked
 * those whose ids it returns.
 */
function lockStatements (parts: Part[]): OwnStatement[] {
  const ids = new Map<string, Set<unknown>>()
  for (const { steps: { steps }, shared, inputs } of parts) {
    for (const step of steps) {
      if (!('add' in step)) continue
      const { add, id: [, value] } = step
      const [, name] = /^@(\w+)$/.exec(value) ?? []
      if (name === undefined) continue
      const rows = ids.get(add) ?? new Set()
      ids.set(add, rows)
      for (const values of [...shared, ...inputs]) if (name in values) rows.add(values[name])
    }
  }
  const wanted = `SELECT i.id FROM ${postgresql.jsonRows('i', { id: 'bigint' })}`
  return [...ids].filter(([, rows]) => rows.size > 1).map(([table, rows]) => ({
    sql: `SELECT t.id ${postgresql.fromByIds(table, 't', 'id', wanted)} ORDER BY t.id FOR NO KEY UPDATE`,
    values: [JSON.stringify(Array.from(rows, (id) => ({ id })))]
  }))
}

/** A step waits for the one before it, because it reads whether that has a row. */
const textForOne = oncePerSteps(({ shared, inputs, steps, result }) => {
  const types = Object.entries({ ...shared, ...inputs })
  const parameters = new Map(types.map(([name, type], i) => [name, `CAST($${i + 1} AS ${type})`]))
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

/** Its parameters are the shared inputs, and the others with their places among these. */
const textForSeveral = oncePerSteps(({ shared, inputs, steps: [first, ...steps], result }) => {
  const { find, where, id: [id, value] } = first
  const resolve = (sql: string): string => withReferences(sql, (input) => `s."${input}"`, (step) => {
    throw new Error(`the first step cannot refer to ${step}`)
  })
  const names = Object.keys(shared)
  const columns = Object.keys(steps.find(({ name }) => name === result)!.columns)
  return `
    WITH ${first.name} AS MATERIALIZED (
      SELECT ${['is_found', ...names].map((name) => `array_agg(s."${name}") AS "${name}"`).join(', ')}
      FROM (
        SELECT s.*, EXISTS (SELECT 1 FROM ${find} WHERE ${find}.${id} = ${resolve(value)} AND ${resolve(where)}
          ${lockOf(first)}) AS is_found
        FROM ${postgresql.jsonRows('s', { ...shared, place: 'ordinality' })} ORDER BY s.place
      ) AS s),
    inputs AS MATERIALIZED (
      SELECT i.*, ${names.map((name) => `s."${name}"[i.place] AS "${name}"`).join(', ')}
      FROM ${postgresql.jsonRows('i', { ...inputs, place: 'bigint', ordinal: 'ordinality' }, 2)}, ${first.name} AS s
      WHERE s.is_found[i.place]),
    ${steps.flatMap((step, i) => ctesOf(step, i === 0 ? 'inputs' : steps[i - 1]!.name)).join(', ')}
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
  if ('add' in step) {
    const { add, id: [id, value] } = step
    const [column] = columns
    const [row, amount] = [resolve(value), resolve(step.amount)]
    // A place in arrays, because a join would compare every row with every other.
    const of = (array: string, id: string): string => `s.${array}[array_position(s.ids, ${id})]`
    const { set, where } = addition(step, of('amounts', `${add}.${id}`), of('counts', `${add}.${id}`))
    const later = `sum(${amount}) OVER (PARTITION BY ${row} ORDER BY b.ordinal DESC) - ${amount}`
    return [`${name}_rows AS (
      UPDATE ${add} SET ${set} FROM (
        SELECT array_agg(id) AS ids, array_agg(amount) AS amounts, array_agg(count) AS counts FROM (
          SELECT ${row} AS id, CAST(sum(${amount}) AS bigint) AS amount, count(*) FROM ${before} AS b GROUP BY ${row}
        ) AS sums
      ) AS s
      WHERE ${add}.${id} = ANY (ARRAY(SELECT ${row} FROM ${before} AS b)) AND ${where}
      RETURNING ${add}.${id}, ${add}.${column})`, `
    ${name} AS MATERIALIZED (
      SELECT b.*, ${added(() => `${of('numbers', row)} - CAST(${later} AS bigint)`)}
      FROM ${before} AS b, (SELECT array_agg(${id}) AS ids, array_agg(${column}) AS numbers FROM ${name}_rows) AS s
      WHERE ${row} = ANY (s.ids))`]
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
