import type { ServerResponse } from 'node:http'

/** Limits of one account, and of the whole process. */
interface ByteLimits { account: number, process: number }

/** Limits what faults hold back. */
const FAULT_LIMITS: ByteLimits = { account: 8_388_608, process: 67_108_864 }

/**
 * What an event stream counts for while a fault slows it down: as much as can wait in its follower and in the lab. A
 * delayed call of a webhook counts for the same: it occupies one of the process's 500 slots, of which faults can so
 * occupy 128, and those of one account 16.
 */
export const RESERVED_BYTES = 524_288

/** Counts the bytes that accounts hold in memory: what faults hold back, and files that are imported. */
export interface HeldBytes {
  /** Returns a function that releases the bytes, or `undefined` when there is no room. */
  reserve: (account: number, bytes: number) => (() => void) | undefined
}

export function createHeldBytes (limits = FAULT_LIMITS): HeldBytes {
  const byAccount = new Map<number, number>()
  let total = 0

  function add (account: number, bytes: number): void {
    const held = (byAccount.get(account) ?? 0) + bytes
    if (held === 0) byAccount.delete(account)
    else byAccount.set(account, held)
    total += bytes
  }

  return {
    reserve (account, bytes) {
      if ((byAccount.get(account) ?? 0) + bytes > limits.account || total + bytes > limits.process) return undefined
      add(account, bytes)
      let isHeld = true
      return () => {
        if (isHeld) add(account, -bytes)
        isHeld = false
      }
    }
  }
}

/** Runs a step of a request that uses the bytes which are held for it. */
export type RunStep = <Result>(step: () => Promise<Result>) => Promise<Result>

/**
 * Releases the bytes of a request when its response has closed and no step of it runs: a client that leaves does not
 * end what its request began.
 */
export function releaseAfter (response: ServerResponse, release: () => void): RunStep {
  // A client can leave before its request starts, and Node emits `close` once.
  let isClosed = response.closed
  let running = 0

  function releaseUnused (): void {
    if (isClosed && running === 0) release()
  }

  response.once('close', () => {
    isClosed = true
    releaseUnused()
  })
  releaseUnused()
  return async (step) => {
    running++
    try {
      return await step()
    } finally {
      running--
      // A step that follows begins in this turn of the event loop.
      setImmediate(releaseUnused)
    }
  }
}
