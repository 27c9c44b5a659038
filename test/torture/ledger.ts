import type { Call, Reply } from './client.ts'
import type { Report } from './report.ts'

/**
 * The books of a store: every write that was asked for, under a label that the row itself carries, and
 * what came of it. After the storm the database must agree with them.
 */
export interface Ledger {
  pets: Map<string, Entry>
  messages: Map<string, Entry>
  /** By their ship date, which is another for each. */
  orders: Map<string, OrderEntry>
  /** What was acknowledged under which Idempotency-Key. */
  answers: Map<string, { act: Act, reply: Reply }>
  /** Keys of writes that were refused, which must be forgotten. */
  refused: Set<string>
  note: (act: Act, reply: Reply) => void
  /** An act that got no answer: it may have happened or not. With `certainly`, it must not. */
  unanswered: (act: Act, certainly?: boolean) => void
}

export interface Entry {
  id?: string | number
  /** `undefined` while nobody knows; false when it was refused. */
  acknowledged: boolean | undefined
}

export interface OrderEntry extends Entry {
  petId: number
  quantity: number
  complete: boolean | undefined
  cancelled: boolean | undefined
}

/** One write that a client wants done, however often it has to ask. */
export interface Act extends Call {
  kind: 'pet' | 'message' | 'order' | 'cancel' | 'complete' | 'count'
  /** Of what is made, or of the order that is changed. */
  label: string
  key: string
}

/** The answers that an act may get once the service is well. */
const ANSWERS: Record<Act['kind'], Array<number | string>> = {
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

    note (act, reply) {
      const { kind, label, key } = act
      const { status, body, text } = reply
      if (!ANSWERS[kind].includes(status) && !ANSWERS[kind].includes(body?.code)) {
        report.violations.push(`${act.method} ${act.path} is answered ${status} ${text}`)
      }
      const acknowledged = status >= 200 && status < 300
      if (acknowledged) ledger.answers.set(key, { act, reply })
      else ledger.refused.add(key)
      settle(act, acknowledged, body?.id)
      if (acknowledged && kind === 'order') {
        const { petId, quantity } = act.body as { petId: number, quantity: number }
        if (body.petId !== petId || body.quantity !== quantity || body.shipDate !== label) report.violations.push(`an order is acknowledged as another: ${text}`)
      }
    },

    unanswered (act, certainly = false) {
      if (certainly) ledger.refused.add(act.key)
      settle(act, certainly ? false : undefined)
    }
  }

  function settle ({ kind, label, body }: Act, acknowledged: boolean | undefined, id?: string | number): void {
    const entry: Entry = { acknowledged, ...id === undefined ? {} : { id } }
    switch (kind) {
      case 'pet': ledger.pets.set(label, entry); break
      case 'message': ledger.messages.set(label, entry); break
      case 'order': ledger.orders.set(label, { ...entry, ...body as { petId: number, quantity: number }, complete: false, cancelled: false }); break
      case 'cancel': ledger.orders.get(label)!.cancelled = acknowledged; break
      case 'complete': ledger.orders.get(label)!.complete = acknowledged; break
      case 'count': break
    }
  }

  return ledger
}
