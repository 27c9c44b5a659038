import type { Call, Reply } from './client.ts'
import type { Report } from './report.ts'

/**
 * Records each requested write of a store and its result, under a label that the row in the database contains.
 * At the end the database must agree with the ledger.
 */
export interface Ledger {
  pets: Map<string, Entry>
  messages: Map<string, Entry>
  /** Orders by ship date, which is unique. */
  orders: Map<string, OrderEntry>
  /** Acknowledged writes by Idempotency-Key. */
  answers: Map<string, { write: WriteRequest, reply: Reply }>
  /** Keys of refused writes, which the service must not keep. */
  refused: Set<string>
  record: (write: WriteRequest, reply: Reply) => void
  /** Records a write without an answer. Its effect is unknown, or impossible when `certainlyRefused`. */
  recordUnanswered: (write: WriteRequest, certainlyRefused?: boolean) => void
}

export interface Entry {
  id?: string | number
  /** False when the service refused the write, `undefined` while the result is unknown. */
  acknowledged: boolean | undefined
}

export interface OrderEntry extends Entry {
  petId: number
  quantity: number
  complete: boolean | undefined
  cancelled: boolean | undefined
}

/** One write of a client, which it repeats until it gets an answer. */
export interface WriteRequest extends Call {
  kind: 'pet' | 'message' | 'order' | 'cancel' | 'complete' | 'count'
  /** The label of the record that is created, or of the order that is changed. */
  label: string
  key: string
}

/** The answers that a healthy service may give, by kind of write. */
const EXPECTED_ANSWERS: Record<WriteRequest['kind'], Array<number | string>> = {
  pet: [201],
  message: [201],
  order: [201, 'pet_not_available', 'insufficient_stock'],
  cancel: [204],
  complete: [200],
  count: [200]
}

export function createLedger (report: Report): Ledger {
  const ledger: Ledger = {
    pets: new Map(),
    messages: new Map(),
    orders: new Map(),
    answers: new Map(),
    refused: new Set(),

    record (write, reply) {
      const { kind, label, key } = write
      const { status, body, text } = reply
      if (!EXPECTED_ANSWERS[kind].includes(status) && !EXPECTED_ANSWERS[kind].includes(body?.code)) {
        report.violations.push(`${write.method} ${write.path} is answered ${status} ${text}`)
      }
      const acknowledged = status >= 200 && status < 300
      if (acknowledged) ledger.answers.set(key, { write, reply })
      else ledger.refused.add(key)
      update(write, acknowledged, body?.id)
      if (acknowledged && kind === 'order') {
        const { petId, quantity } = write.body as { petId: number, quantity: number }
        if (body.petId !== petId || body.quantity !== quantity || body.shipDate !== label) {
          report.violations.push(`the answer shows another order: ${text}`)
        }
      }
    },

    recordUnanswered (write, certainlyRefused = false) {
      if (certainlyRefused) ledger.refused.add(write.key)
      update(write, certainlyRefused ? false : undefined)
    }
  }

  function update ({ kind, label, body }: WriteRequest, acknowledged: boolean | undefined, id?: string | number): void {
    const entry: Entry = { acknowledged, ...id === undefined ? {} : { id } }
    switch (kind) {
      case 'pet': ledger.pets.set(label, entry); break
      case 'message': ledger.messages.set(label, entry); break
      case 'order': {
        const order = body as { petId: number, quantity: number }
        ledger.orders.set(label, { ...entry, ...order, complete: false, cancelled: false })
        break
      }
      case 'cancel': ledger.orders.get(label)!.cancelled = acknowledged; break
      case 'complete': ledger.orders.get(label)!.complete = acknowledged; break
      case 'count': break
    }
  }

  return ledger
}
