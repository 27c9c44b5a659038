import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'

/**
 * Sends requests with a revoked key until one is rejected. A request that is sent later than `ms` must be rejected,
 * however slow the machine is.
 */
export async function rejectedWithin (t: Test, ms: number, send: () => Promise<number>): Promise<void> {
  const revokedAt = Date.now()
  for (;;) {
    const sentAfter = Date.now() - revokedAt
    const status = await send()
    if (status === 401 || sentAfter > ms) {
      t.equal(status, 401, `after ${sentAfter} ms`)
      return
    }
    await sleep(50)
  }
}
