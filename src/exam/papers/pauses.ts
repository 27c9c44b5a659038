import type { RecordedRequest } from '../../client/client.ts'
import { GROWTH_SHARE, LEAST_WAITING_MS, STEP_ATTEMPTS, STEP_DOUBT_SHARE, STEP_SHARE } from '../margins.ts'
import { Undecided, type Finding } from '../paper.ts'
import { pausesOf } from '../recorded-requests.ts'

/**
 * Judges the pauses of several clients that failed at the same moment: the attempts of each.
 *
 * @param held how often the paper was held, this time included
 * @throws {Undecided} if the clients can be in step by chance
 */
export function judgePauses (clients: RecordedRequest[][], held: number): Finding[] {
  const [shown = []] = clients
  const columns = columnsOf(clients)
  const { length } = columns
  if (length === 0) return []
  const waited = median(clients.map((attempts) => sum(pausesOf(attempts))))
  if (waited < LEAST_WAITING_MS) {
    return [{ text: `The client waited for ${waited} ms in all before it gave up.`, requests: shown }]
  }
  const findings: Finding[] = []
  const averages = columns.map((column) => Math.round(average(column)))
  const half = Math.floor(length / 2)
  if (half > 0 && average(averages.slice(-half)) < average(averages.slice(0, half)) * (1 + GROWTH_SHARE)) {
    findings.push({ text: `The pauses do not grow. They are, on average: ${averages.join(', ')} ms.`, requests: shown })
  }
  const spread = spreadOf(columns)
  if (findings.length === 0 && held < STEP_ATTEMPTS && spread < STEP_DOUBT_SHARE) throw new Undecided()
  if (spread < STEP_SHARE) {
    const text = `${clients.length} clients that failed together came back together, after pauses of ` +
      `${averages.join(', ')} ms. A random share of each pause keeps them apart.`
    findings.push({ text, requests: clients.map((attempts) => attempts[1]!) })
  }
  return findings
}

/** Returns the pauses of all clients before their second attempt, their third attempt and so on. */
function columnsOf (clients: RecordedRequest[][]): number[][] {
  const pauses = clients.map(pausesOf)
  const length = Math.min(...pauses.map((own) => own.length))
  return Array.from({ length }, (_, i) => pauses.map((own) => own[i]!))
}

/** Returns the share of their pauses in which most clients differ. The machine can have held up the others. */
function spreadOf (columns: number[][]): number {
  const spread = sum(columns.map((column) => median(column) - Math.min(...column)))
  return spread / sum(columns.map(median))
}

function sum (numbers: number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

function average (numbers: number[]): number {
  return sum(numbers) / numbers.length
}

function median (numbers: number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]!
}
