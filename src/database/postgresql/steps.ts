import type { OwnStatement } from '../statements.ts'
import { isQuery, withReferences, type CommitSteps, type Step, type Steps } from '../steps.ts'
import { BEGIN, COMMIT } from './statement-batch.ts'

const LOCKS = { 'key share': 'FOR KEY SHARE SKIP LOCKED', update: 'FOR UPDATE SKIP LOCKED' }

/** The steps as one statement. */
const texts = new WeakMap<Steps, string>()

/** Returns a function that runs steps as one statement for each input, and commits in the same round trip. */
export function createCommitSteps (runTogether: (statements: OwnStatement[]) => Promise<object[][]>): CommitSteps {
  return async (runs) => {
    const statements = runs.map(({ steps, input }): OwnStatement => {
      let sql = texts.get(steps)
      if (sql === undefined) {
        sql = textOf(steps)
        texts.set(steps, sql)
      }
      const members = input as Record<string, unknown>
      return { sql, values: Object.keys(steps.inputs).map((name) => members[name]) }
    })
    const results = await runTogether([BEGIN, ...statements, COMMIT])
    return runs.map((_run, i) => results[i + 1]![0])
  }
}

/** A step waits for the one before it, because it reads whether that has a row. */
function textOf ({ inputs, steps, result }: Steps): string {
  const parameters = new Map(Object.entries(inputs).map(([name, type], i) => [name, `CAST($${i + 1} AS ${type})`]))
  const textOfStep = ({ name, sql, columns, lock }: Step, i: number): string => {
    const text = withReferences(sql, (name) => parameters.get(name)!, (step, column) => `(SELECT ${column} FROM ${step})`)
    const before = i === 0 ? '' : `AND EXISTS (SELECT 1 FROM ${steps[i - 1]!.name})`
    const end = isQuery(sql) ? lock === undefined ? '' : LOCKS[lock] : `RETURNING ${Object.keys(columns).join(', ')}`
    return `${name} AS ${isQuery(sql) ? 'MATERIALIZED' : ''} (${text} ${before} ${end})`
  }
  return `WITH ${steps.map(textOfStep).join(', ')} SELECT * FROM ${result}`
}
