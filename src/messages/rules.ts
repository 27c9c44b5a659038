import type { Message } from './schemas.ts'

/** A message and the number of pending deliveries of its `message.created`. */
export interface MessageProgress {
  status: Message['status']
  waiting: number
}

/**
 * An outcome of one delivery: `attempted` when an attempt failed and another follows, `dropped` when its webhook was
 * deleted. All but `attempted` end the delivery.
 */
export type DeliveryOutcome = 'attempted' | 'accepted' | 'failed' | 'dropped'

/** Returns the message's progress after an outcome. `delivered` and `failed` are final. */
export function nextMessageStatus ({ status, waiting }: MessageProgress, outcome: DeliveryOutcome): MessageProgress {
  const left = outcome === 'attempted' ? waiting : waiting - 1
  if (status === 'delivered' || status === 'failed') return { status, waiting: left }
  if (outcome === 'failed') return { status: 'failed', waiting: left }
  // A message without pending deliveries is delivered, also when all of them were dropped.
  if (left === 0) return { status: 'delivered', waiting: left }
  return { status: outcome === 'dropped' ? status : 'processing', waiting: left }
}
