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
    const locks = runs.length === 1 ? [] : lockStatements(parts)
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

interface Run { shared: Values, input: Values }

/** Inputs that share a statement. */
interface Part {
  steps: Steps
  shared: Set<Values>
  runs: Run[]
  /** The positions of the inputs among all inputs. */
  positions: number[]
}

function partsOf (runs: readonly StepsRun[]): Part[] {
  const parts = new Map<Steps, Part>()
  for (const [position, { steps, shared, input }] of runs.entries()) {
    const part = parts.get(steps) ?? { steps, shared: new Set(), runs: [], positions: [] }
    parts.set(steps, part)
    part.shared.add(shared as Values)
    part.runs.push({ shared, input } as Run)
    part.positions.push(position)
  }
  return [...parts.values()]
}

function statementOfPart ({ steps, shared, runs }: Part): OwnStatement {
  const [first] = runs as [Run]
  const sharedValues = Object.keys(steps.shared).map((name) => first.shared[name])
  if (runs.length === 1) {
    const values = Object.keys(steps.inputs).map((name) => first.input[name])
    return { sql: textForOne(steps), values: [...sharedValues, ...values] }
  }
  if (shared.size === 1) {
    return { sql: textForSharing(steps), values: [...sharedValues, JSON.stringify(runs.map(({ input }) => input))] }
  }
  // For an object with two spreads, Node.js 20 takes more than ten times as long.
  const inputs = runs.map(({ shared, input }) => Object.assign({}, shared, input))
  return { sql: textForSeveral(steps), values: [JSON.stringify(inputs)] }
}

/**
 * Locks the rows to which the inputs add in the order of their ids, as all transactions do. An earlier step has locked
 * those whose ids it returns.
 *
 * These are the counters of accounts. Transactions with the same account come one after the other, so the steps meet
 * no other rows that such a transaction has locked, and read no row that it changes meanwhile. One input does without:
 * it needs no order, and saves the statement.
 */
function lockStatements (parts: Part[]): OwnStatement[] {
  const ids = new Map<string, Set<unknown>>()
  for (const { steps: { steps }, runs } of parts) {
    for (const step of steps) {
      if (!('add' in step)) continue
      const { add, id: [, value] } = step
      const name = inputNamed(value)
      if (name === undefined) continue
      const rows = ids.get(add) ?? new Set()
      ids.set(add, rows)
      for (const { shared, input } of runs) rows.add(name in shared ? shared[name] : input[name])
    }
  }
  const wanted = `SELECT i.id FROM ${postgresql.jsonRows('i', { id: 'bigint' })}`
  return Array.from(ids, ([table, rows]) => ({
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
    return `${step.name} AS ${'find' in step || 'compute' in step ? 'MATERIALIZED' : ''} (${text} ${'find' in step ? lockOf(step) : ''})`
  })
  return `WITH ${ctes.join(', ')} SELECT * FROM ${result}`
})

function lockOf ({ lock }: { lock?: keyof typeof LOCKS | undefined }): string {
  return lock === undefined ? '' : LOCKS[lock]
}

const textForSeveral = oncePerSteps((all) => {
  const rows = postgresql.jsonRows('i', { ...all.shared, ...all.inputs, ordinal: 'ordinality' })
  return textOf(all, `SELECT * FROM ${rows}`, all.steps)
})

/** For inputs that all share the same: these are parameters of their own, and the first step runs once. */
const textForSharing = oncePerSteps((all) => {
  const { shared, inputs, steps: [{ find, id: [id, value], where, lock }, ...steps] } = all
  const names = Object.keys(shared)
  const parameter: Parameter = (name) =>
    name in shared ? `CAST($${names.indexOf(name) + 1} AS ${shared[name]})` : undefined
  const resolve = (sql: string): string => withReferences(sql, (name) => parameter(name)!, () => '')
  return textOf(all, `
    SELECT i.*, ${names.map((name) => `${parameter(name)} AS "${name}"`).join(', ')}
    FROM ${postgresql.jsonRows('i', { ...inputs, ordinal: 'ordinality' }, names.length + 1)}
    WHERE EXISTS (
      SELECT 1 FROM ${find} WHERE ${find}.${id} = ${resolve(value)} AND ${resolve(where)} ${lockOf({ lock })})`,
  steps, parameter)
})

/** Returns the parameter of a shared input, if there is one. */
type Parameter = (input: string) => string | undefined

function textOf ({ result }: Steps, inputs: string, steps: Step[], parameter?: Parameter): string {
  const ctes = steps.flatMap((step, i) => ctesOf(step, i === 0 ? 'inputs' : steps[i - 1]!.name, parameter))
  const columns = Object.keys(steps.find(({ name }) => name === result)!.columns)
  return `
    WITH inputs AS MATERIALIZED (${inputs}), ${ctes.join(', ')}
    SELECT ordinal, ${columns.map((column) => `"${result}.${column}" AS ${column}`).join(', ')} FROM ${result}`
}

/** Returns the part of the statement for a step: it adds its columns to the rows of the step before it. */
function ctesOf (step: Step, before: string, parameter?: Parameter): string[] {
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
    const input = inputNamed(value)
    const onlyRow = input === undefined ? undefined : parameter?.(input)
    if (onlyRow !== undefined) {
      const { set, where } = addition(step, 's.amount', 's.count')
      return [`${name}_rows AS (
        UPDATE ${add} SET ${set}
        FROM (SELECT CAST(sum(${amount}) AS bigint) AS amount, count(*) FROM ${before} AS b HAVING count(*) > 0) AS s
        WHERE ${add}.${id} = ${onlyRow} AND ${where}
        RETURNING ${add}.${column})`, `
      ${name} AS MATERIALIZED (
        SELECT b.*, ${added(() => `r.${column} - CAST(sum(${amount}) OVER later - ${amount} AS bigint)`)}
        FROM ${before} AS b, ${name}_rows AS r WINDOW later AS (ORDER BY b.ordinal DESC))`]
    }
    // A place in arrays, because a join would compare every row with every other.
    const of = (array: string, id: string): string => `s.${array}[array_position(s.ids, ${id})]`
    const { set, where } = addition(step, of('amounts', `${add}.${id}`), of('counts', `${add}.${id}`))
    return [`${name}_rows AS (
      UPDATE ${add} SET ${set} FROM (
        SELECT array_agg(id) AS ids, array_agg(amount) AS amounts, array_agg(count) AS counts FROM (
          SELECT ${row} AS id, CAST(sum(${amount}) AS bigint) AS amount, count(*) FROM ${before} AS b GROUP BY ${row}
        ) AS sums
      ) AS s
      WHERE ${add}.${id} = ANY (ARRAY(SELECT ${row} FROM ${before} AS b)) AND ${where}
      RETURNING ${add}.${id}, ${add}.${column})`, `
    ${name} AS MATERIALIZED (
      SELECT b.*, ${added(() => `${of('numbers', row)} - CAST(sum(${amount}) OVER later - ${amount} AS bigint)`)}
      FROM ${before} AS b, (SELECT array_agg(${id}) AS ids, array_agg(${column}) AS numbers FROM ${name}_rows) AS s
      WHERE ${row} = ANY (s.ids) WINDOW later AS (PARTITION BY ${row} ORDER BY b.ordinal DESC))`]
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

/** Returns the input that an expression names, unless it is anything else. */
function inputNamed (value: string): string | undefined {
  return /^@(\w+)$/.exec(value)?.[1]
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
