import { setTimeout as sleep } from 'node:timers/promises'
import type { QueuedCommand } from './command.ts'

/** Maximum time that a write waits for a key in use, or for a row that another process has locked, in ms. */
export const MAX_WAIT_MS = 2_000

/** Pause before an attempt of such a write, in ms. */
const RETRY_MS = 50

/**
 * Writes that met a conflict alone: mostly, another process has locked their Idempotency-Key or row. No group and no
 * other write waits for them.
 */
export interface LockWaiters {
  has: (entry: QueuedCommand) => boolean
  /** Tries a write again until the other process ends its transaction, or it has waited for too long. */
  add: (entry: QueuedCommand, error: unknown) => void
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

export function createLockWaiters ({ run, isConflict, onError, onEnd }: Handlers): LockWaiters {
  const waiting = new Set<QueuedCommand>()
  /** The attempts come one after the other, so that they use one connection. */
  let attempts: Promise<void> = Promise.resolve()

  function attemptNext (entry: QueuedCommand, error: unknown): void {
    const left = entry.since + MAX_WAIT_MS - performance.now()
    if (left <= 0) return fail(entry, error)
    // The attempts of the writes before it can take longer.
    const timer = setTimeout(() => { fail(entry, error) }, left)
    attempts = attempts.then(async () => {
      clearTimeout(timer)
      if (waiting.has(entry)) await attempt(entry)
    })
  }

  async function attempt (entry: QueuedCommand): Promise<void> {
    await sleep(RETRY_MS)
    try {
      await run(entry)
      end(entry)
    } catch (error) {
      if (isConflict(error)) attemptNext(entry, error)
      else fail(entry, error)
    }
  }

  function fail (entry: QueuedCommand, error: unknown): void {
    onError(entry, error)
    end(entry)
  }

  function end (entry: QueuedCommand): void {
    waiting.delete(entry)
    onEnd(entry)
  }

  return {
    has: (entry) => waiting.has(entry),
    add (entry, error) {
      waiting.add(entry)
      attemptNext(entry, error)
    }
  }
}
