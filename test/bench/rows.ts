import type { Left } from './load.ts'
import type { Store } from './stores.ts'

/** Thrown when a run did not measure what it should. Its figures are void. */
export class Void extends Error {}

const NAMES = ['records', 'events', 'idempotencyRecords'] as const

/** Counts the rows that a server leaves, and compares them with its answers. */
export interface RowCheck {
  /** Adds the rows of a load. */
  add: (left: Left) => void
  /** @throws Void if the server did other work than it answered, so that it cannot be compared with others */
  check: (what: string) => Promise<void>
}

export async function startRowCheck (store: Store): Promise<RowCheck> {
  const expected = await countRows(store)
  return {
    add (left) {
      for (const name of NAMES) expected[name] += left[name]
    },
    async check (what) {
      const found = await countRows(store)
      const wrong = NAMES.filter((name) => found[name] !== expected[name])
        .map((name) => `${expected[name]} ${name} and not ${found[name]}`)
      if (wrong.length > 0) throw new Void(`${what}: by its answers, the store should have ${wrong.join(', ')}`)
    }
  }
}

async function countRows (store: Store): Promise<Left> {
  const count = (from: string): string => `(SELECT count(*) FROM ${from})`
  const [row] = await store.query(`SELECT
    ${['pets', 'orders', 'messages'].map(count).join(' + ')} AS records,
    ${count("events WHERE type <> 'message.delivered'")} AS events,
    ${count('idempotency_records')} AS idempotency`)
  return {
    records: Number(row!['records']),
    events: Number(row!['events']),
    idempotencyRecords: Number(row!['idempotency'])
  }
}
