import type { RecordedRequest } from '../../client/client.ts'
import { GROWTH_SHARE, LEAST_WAITING_MS, STEP_SHARE } from '../margins.ts'
import type { Finding } from '../paper.ts'
import { pausesOf } from '../recorded-requests.ts'

/** Judges the pauses of several clients that failed at the same moment: the attempts of each. */
export function judgePauses (clients: RecordedRequest[][]): Finding[] {
  const pauses = clients.map(pausesOf)
  const [shown = []] = clients
  const length = Math.min(...pauses.map((own) => own.length))
  if (length === 0) return []
  /** The pauses of all clients before their second attempt, their third attempt and so on. */
  const columns = Array.from({ length }, (_, i) => pauses.map((own) => own[i]!))
  const waited = median(pauses.map(sum))
  if (waited < LEAST_WAITING_MS) {
    return [{ text: `The client waited for ${waited} ms in all before it gave up.`, requests: shown }]
  }
  const findings: Finding[] = []
  const averages = columns.map((column) => Math.round(average(column)))
  const half = Math.floor(length / 2)
  if (half > 0 && average(averages.slice(-half)) < average(averages.slice(0, half)) * (1 + GROWTH_SHARE)) {
    findings.push({ text: `The pauses do not grow. They are, on average: ${averages.join(', ')} ms.`, requests: shown })
  }
  const longest = columns.map((column) => Math.max(...column))
  const spread = sum(columns.map((column, i) => longest[i]! - Math.min(...column)))
  if (spread < STEP_SHARE * sum(longest)) {
    const text = `${clients.length} clients that failed together came back together, after pauses of ` +
      `${averages.join(', ')} ms. A random share of each pause keeps them apart.`
    findings.push({ text, requests: clients.map((attempts) => attempts[1]!) })
  }
  return findings
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
