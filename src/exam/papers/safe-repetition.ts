import type { Order, RecordedRequest } from '../../client/client.ts'
import type { Finding } from '../paper.ts'
import { nameOf } from '../recorded-requests.ts'

/** An order that the client was to place once, and what came of it. */
export interface WantedOrder {
  /** What happened to the first response. */
  fate: string
  attempts: RecordedRequest[]
  /** The orders of the store for the pet. */
  orders: Order[]
}

/** Judges whether a client repeated an order so that it was placed once. */
export function judgeRepetition ({ fate, attempts, orders }: WantedOrder): Finding[] {
  const [first, ...others] = attempts
  if (first === undefined) return [{ text: 'The client sent no order.' }]
  const findings: Finding[] = []
  if (others.length === 0) {
    findings.push({ text: `The client did not repeat ${nameOf(first)}, ${fate}.`, requests: attempts })
  }
  const other = others.find(({ idempotencyKey }) => idempotencyKey !== first.idempotencyKey)
  if (first.idempotencyKey === undefined) {
    findings.push({ text: `The order of ${nameOf(first)} has no Idempotency-Key.`, requests: attempts })
  } else if (other !== undefined) {
    const text = `The repetition in ${nameOf(other)} has another Idempotency-Key than ${nameOf(first)}, ${fate}.`
    findings.push({ text, requests: attempts })
  }
  if (orders.length !== 1) {
    const ids = orders.map(({ id }) => id).join(', ')
    findings.push({ text: `The store has ${orders.length} orders in place of 1: ${ids}.`, requests: attempts })
  }
  return findings
}
