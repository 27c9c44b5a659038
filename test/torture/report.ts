/** What one program did and saw on one database. */
export interface Report {
  program: string
  database: string
  /** How often something was broken. */
  rounds: number
  /** Requests that were sent, repetitions included. */
  requests: number
  /** Acknowledged writes that were looked up in the database afterwards. */
  checked: number
  violations: string[]
  notes: string[]
}

/** So many violations are printed; more of them say nothing new. */
const SHOWN = 20

export function createReport (program: string, database: string): Report {
  return { program, database, rounds: 0, requests: 0, checked: 0, violations: [], notes: [] }
}

export function print ({ program, database, rounds, requests, checked, violations, notes }: Report, seconds: number): void {
  const mark = violations.length === 0 ? '✔' : '✖'
  console.log(`${mark} ${program} on ${database}: ${rounds} rounds, ${requests} requests, ${checked} acknowledged writes checked, ${violations.length} violations (${seconds.toFixed(1)} s)`)
  for (const note of notes) console.log(`    ${note}`)
  for (const violation of violations.slice(0, SHOWN)) console.log(`  ✖ ${violation}`)
  if (violations.length > SHOWN) console.log(`  ✖ … and ${violations.length - SHOWN} more`)
}
