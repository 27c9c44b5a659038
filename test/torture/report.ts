/** The result of one scenario on one database. */
export interface Report {
  scenario: string
  database: string
  /** The number of faults. */
  rounds: number
  /** The number of requests, repetitions included. */
  requests: number
  /** The number of acknowledged writes that were checked in the database at the end. */
  checked: number
  violations: string[]
  notes: string[]
}

/** Limits the printed violations. Most of the others repeat them. */
const MAX_PRINTED_VIOLATIONS = 20

export function createReport (scenario: string, database: string): Report {
  return { scenario, database, rounds: 0, requests: 0, checked: 0, violations: [], notes: [] }
}

export function printReport (report: Report, seconds: number): void {
  const { scenario, database, rounds, requests, checked, violations, notes } = report
  const mark = violations.length === 0 ? '✔' : '✖'
  console.log(`${mark} ${scenario} on ${database}: ${rounds} rounds, ${requests} requests, ` +
    `${checked} acknowledged writes checked, ${violations.length} violations (${seconds.toFixed(1)} s)`)
  for (const note of notes) console.log(`    ${note}`)
  for (const violation of violations.slice(0, MAX_PRINTED_VIOLATIONS)) console.log(`  ✖ ${violation}`)
  const more = violations.length - MAX_PRINTED_VIOLATIONS
  if (more > 0) console.log(`  ✖ … and ${more} more`)
}
