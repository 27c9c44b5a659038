import type { ClaimedDelivery } from '../deliveries/claim.ts'

/** Time for which an event waits for the next one of its webhook, in ms. */
export const HOLD_MS = 10_000

/** A delivery that waits until the next event of its webhook was sent. */
interface Held extends Pick<ClaimedDelivery, 'id' | 'account' | 'webhook' | 'event'> {
  /** Its row waits, so that it can be made due. */
  isStored: boolean
  /** The next event was sent. */
  isPassed: boolean
}

export interface Reordering {
  /** Returns whether a held delivery comes back, which is then forgotten. */
  takeBack: (delivery: ClaimedDelivery) => boolean
  /** Returns a function to call when the delivery was sent, if another one waits for it. */
  passing: (delivery: ClaimedDelivery) => (() => Promise<void>) | undefined
  /** Holds a delivery. @returns a function to call when its row waits */
  hold: (delivery: ClaimedDelivery) => () => Promise<void>
}

/**
 * Remembers the deliveries that faults hold in this process, one for each webhook. If another process sends the next
 * event, or this one ends, the held event follows after `HOLD_MS`.
 *
 * @param release makes a held delivery due
 */
export function createReordering (release: (held: Held) => Promise<void>): Reordering {
  const byWebhook = new Map<number, Held>()

  async function releaseIfReady (held: Held): Promise<void> {
    if (held.isStored && held.isPassed) await release(held)
  }

  return {
    takeBack ({ webhook, id }) {
      return byWebhook.get(webhook)?.id === id && byWebhook.delete(webhook)
    },
    passing ({ webhook, event }) {
      const held = byWebhook.get(webhook)
      if (held === undefined || held.isPassed || event <= held.event) return undefined
      return async () => {
        held.isPassed = true
        await releaseIfReady(held)
      }
    },
    hold ({ id, account, webhook, event }) {
      const held = { id, account, webhook, event, isStored: false, isPassed: false }
      byWebhook.set(webhook, held)
      // Another process may have sent it.
      setTimeout(() => { if (byWebhook.get(webhook) === held) byWebhook.delete(webhook) }, 2 * HOLD_MS).unref()
      return async () => {
        held.isStored = true
        await releaseIfReady(held)
      }
    }
  }
}
