import type { Message } from './schemas.ts'

/** A message and the deliveries of its `message.created` that still wait. */
export interface MessageProgress {
  status: Message['status']
  waiting: number
}

/** What happens to one of them; `dropped` when its webhook was deleted. */
export type DeliveryOutcome = 'tried' | 'accepted' | 'givenUp' | 'dropped'

/** How far the message is afterwards. Both ends are final, whatever the other deliveries do. */
export function nextMessageStatus ({ status, waiting }: MessageProgress, step: DeliveryOutcome): MessageProgress {
  const left = step === 'tried' ? waiting : waiting - 1
  if (status === 'delivered' || status === 'failed') return { status, waiting: left }
  if (step === 'givenUp') return { status: 'failed', waiting: left }
  // An empty rest counts as accepted.
  if (left === 0) return { status: 'delivered', waiting: left }
  return { status: step === 'dropped' ? status : 'processing', waiting: left }
}
