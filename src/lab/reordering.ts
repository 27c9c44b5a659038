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
 * Remembers the deliveries that faults hold in this process: several of a webhook if they were claimed together. If
 * another process sends the next event, or this one ends, the held event follows after `HOLD_MS`.
 *
 * @param release makes a held delivery due
 */
export function createReordering (release: (held: Held) => Promise<void>): Reordering {
  const byWebhook = new Map<number, Held[]>()
  const heldOf = (webhook: number): Held[] => byWebhook.get(webhook) ?? []

  async function releaseIfReady (held: Held): Promise<void> {
    if (held.isStored && held.isPassed) await release(held)
  }

  function forget (held: Held): void {
    const others = heldOf(held.webhook).filter((other) => other !== held)
    if (others.length > 0) byWebhook.set(held.webhook, others)
    else byWebhook.delete(held.webhook)
  }

  return {
    takeBack ({ webhook, id }) {
      const held = heldOf(webhook).find((other) => other.id === id)
      if (held !== undefined) forget(held)
      return held !== undefined
    },
    passing ({ webhook, event }) {
      const passed = heldOf(webhook).filter((held) => !held.isPassed && event > held.event)
      if (passed.length === 0) return undefined
      return async () => {
        // A duplicate passes twice.
        for (const held of passed.splice(0)) {
          held.isPassed = true
          await releaseIfReady(held)
        }
      }
    },
    hold ({ id, account, webhook, event }) {
      const held = { id, account, webhook, event, isStored: false, isPassed: false }
      byWebhook.set(webhook, [...heldOf(webhook), held])
      // Another process may have sent it.
      setTimeout(forget, 2 * HOLD_MS, held).unref()
      return async () => {
        held.isStored = true
        await releaseIfReady(held)
      }
    }
  }
}
