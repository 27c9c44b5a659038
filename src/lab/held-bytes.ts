/** Limits what faults hold back in this process: of one account, and of all together. */
const ACCOUNT_BYTES = 8_388_608
const PROCESS_BYTES = 67_108_864

/**
 * What an event stream counts for while a fault slows it down: as much as can wait in its follower and in the lab. A
 * delayed call of a webhook counts for the same: it occupies one of the process's 500 slots, of which faults can so
 * occupy 128, and those of one account 16.
 */
export const RESERVED_BYTES = 524_288

/** Counts the bytes of answers, streams and calls that faults hold back, so that they do not fill the memory. */
export interface HeldBytes {
  /** Returns a function that releases the bytes, or `undefined` when there is no room: then the fault has no effect. */
  reserve: (account: number, bytes: number) => (() => void) | undefined
}

export function createHeldBytes (): HeldBytes {
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
      if ((byAccount.get(account) ?? 0) + bytes > ACCOUNT_BYTES || total + bytes > PROCESS_BYTES) return undefined
      add(account, bytes)
      let isHeld = true
      return () => {
        if (isHeld) add(account, -bytes)
        isHeld = false
      }
    }
  }
}
