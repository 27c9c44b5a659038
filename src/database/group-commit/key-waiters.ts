import { setTimeout as sleep } from 'node:timers/promises'
import type { QueuedCommand } from './command.ts'
import { IdempotencyKeyLocked } from './idempotency-records.ts'

/** Maximum time that a write waits for another process that uses its Idempotency-Key, in ms. */
const KEY_WAIT_MS = 2_000

/** Pause before an attempt of such a write, in ms. */
const KEY_RETRY_MS = 50

/** Writes whose Idempotency-Key another process uses. No group and no other write waits for them. */
export interface KeyWaiters {
  has: (entry: QueuedCommand) => boolean
  /** Tries a write again until the other process ends its transaction, for at most `KEY_WAIT_MS`. */
  add: (entry: QueuedCommand) => void
}

interface Handlers {
  /** Runs the write in a transaction of its own, and answers it. */
  run: (entry: QueuedCommand) => Promise<void>
  /** Tells whether a write that failed can succeed later. */
  isConflict: (error: unknown) => boolean
  /** Answers a write that failed. */
  onError: (entry: QueuedCommand, error: unknown) => void
  /** Called when a write was answered. */
  onEnd: (entry: QueuedCommand) => void
}

export function createKeyWaiters ({ run, isConflict, onError, onEnd }: Handlers): KeyWaiters {
  const waiting = new Set<QueuedCommand>()
  /** The attempts come one after the other, so that they use one connection. */
  let attempts: Promise<void> = Promise.resolve()

  function attemptNext (entry: QueuedCommand): void {
    attempts = attempts.then(async () => { await attempt(entry) })
  }

  async function attempt (entry: QueuedCommand): Promise<void> {
    const isLate = (): boolean => Date.now() - entry.since > KEY_WAIT_MS
    try {
      if (isLate()) throw new IdempotencyKeyLocked('a key is in use')
      await sleep(KEY_RETRY_MS)
      await run(entry)
    } catch (error) {
      if (isConflict(error) && !isLate()) return attemptNext(entry)
      onError(entry, error)
    }
    waiting.delete(entry)
    onEnd(entry)
  }

  return {
    has: (entry) => waiting.has(entry),
    add (entry) {
      waiting.add(entry)
      attemptNext(entry)
    }
  }
}
