import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import { getOrAdd } from '../database/get-or-add.ts'
import type { Commit } from '../database/group-commit/committer.ts'
import { classifyError } from '../database/error-classification.ts'
import { Overloaded, Unauthorized } from '../errors.ts'
import type { CapturedRequest } from './captured-request.ts'
import { recordRequests } from './commands.ts'

/** Time for which requests gather, so that many share a transaction. */
const GATHER_MS = 200

/**
 * While more come than the journal keeps, newer ones take the place of most before they are recorded. The others are
 * recorded when the oldest has waited for `OVERFULL_AGE_MS`, so that other processes have them within a second, or when
 * so many came for `OVERFULL_GATHER_MS`. To record one takes 80 us: with 600 ms in place of 3 s, a process took 1.37
 * times the CPU of one without a journal, and 1.27 (5,000 mixed requests/s, SQLite).
 */
const OVERFULL_AGE_MS = 600
const OVERFULL_GATHER_MS = 3_000

/** A batch is followed by a pause of this many times its duration, so that other writes have most of the time. */
const PAUSE_PER_BATCH = 7

/** Limit what one transaction records: no request of another account waits for it noticeably. */
const BATCH_REQUESTS = 250
const BATCH_BYTES = 1_048_576

/** Limit what waits to be recorded: of one account, and of all accounts of this process. The oldest are dropped. */
const ACCOUNT_BYTES = 4_194_304
const PROCESS_BYTES = 33_554_432

/** Some room: otherwise each further request of thousands of accounts would look for the largest again. */
const ROOM_BYTES = 1_048_576

/** Records requests after their responses, so that no response waits for it. */
export interface Recorder {
  /** @param keep how many requests the journal of the account keeps */
  add: (account: number, request: CapturedRequest, keep: number) => void
  /**
   * Waits until all requests of an account that have ended in this process, and in those that share its port, are
   * recorded.
   */
  recorded: (account: number) => Promise<void>
  /** Forgets the requests of an account that wait. */
  forget: (account: number) => void
  /** Records everything that waits. */
  close: () => Promise<void>
}

interface Options {
  commit: Commit
  log: FastifyBaseLogger
  /** Charges an account for the time since `began`, in which its requests were described. `commit` charges itself. */
  charge: (account: number, began: number) => void
}

interface Waiting {
  requests: CapturedRequest[]
  bytes: number
  /** When these began to gather, by `performance.now()`. */
  since: number
  /** Whether more came since then than the journal keeps. */
  isOverfull: boolean
  /** The number of requests that were dropped since the last batch. */
  dropped: number
  writing: Promise<void> | undefined
}

export function createRecorder ({ commit, log, charge }: Options): Recorder {
  const accounts = new Map<number, Waiting>()
  let total = 0
  let timer: NodeJS.Timeout | undefined

  function add (account: number, request: CapturedRequest, keep: number): void {
    const waiting = getOrAdd(accounts, account, (): Waiting =>
      ({ requests: [], bytes: 0, since: performance.now(), isOverfull: false, dropped: 0, writing: undefined }))
    waiting.requests.push(request)
    resize(waiting, request.bytes)
    // The journal would delete it at once. Among few, later attempts still find it.
    if (waiting.requests.length > Math.max(keep, BATCH_REQUESTS)) {
      removeOldest(waiting)
      waiting.isOverfull = true
    }
    while (waiting.bytes > ACCOUNT_BYTES && drop(waiting)) continue
    if (total > PROCESS_BYTES) makeRoom()
    schedule()
  }

  /** Drops the oldest requests of the largest accounts, but not what is being recorded. */
  function makeRoom (): void {
    const droppable = [...accounts.values()].filter(({ requests }) => requests.length > 0)
    for (const waiting of droppable.sort((a, b) => b.bytes - a.bytes)) {
      while (drop(waiting)) if (total <= PROCESS_BYTES - ROOM_BYTES) return
    }
  }

  function resize (waiting: Waiting, bytes: number): void {
    waiting.bytes += bytes
    total += bytes
  }

  /** Removes the oldest request that is not being recorded. @returns whether there was one */
  function removeOldest (waiting: Waiting): boolean {
    const oldest = waiting.requests.shift()
    if (oldest === undefined) return false
    resize(waiting, -oldest.bytes)
    return true
  }

  /** Removes the oldest request, which the journal should have had. @returns whether there was one */
  function drop (waiting: Waiting): boolean {
    const isDropped = removeOldest(waiting)
    if (isDropped) waiting.dropped++
    return isDropped
  }

  function schedule (): void {
    timer ??= setTimeout(() => {
      timer = undefined
      for (const [account, waiting] of accounts) {
        // What gathers behind a transaction in flight is late because of it. Its end schedules again.
        if (waiting.writing !== undefined) continue
        if (waiting.isOverfull && !isLate(waiting)) {
          schedule()
          continue
        }
        recorded(account).catch((error: unknown) => {
          log.warn({ err: error }, 'cannot record requests in the journal')
        })
      }
    }, GATHER_MS).unref()
  }

  function isLate ({ requests, since }: Waiting): boolean {
    const [oldest] = requests
    const now = performance.now()
    return oldest === undefined || now - oldest.endedAt >= OVERFULL_AGE_MS || now - since >= OVERFULL_GATHER_MS
  }

  async function recorded (account: number): Promise<void> {
    const waiting = accounts.get(account)
    if (waiting === undefined) return
    // A batch in flight may have begun before the last request ended. If it fails, another caller gets its error.
    await waiting.writing?.catch(() => {})
    // Of several callers that waited for it, the first begins the next one.
    if (waiting.writing === undefined && waiting.requests.length === 0 && waiting.dropped === 0) return
    await (waiting.writing ??= write(account, waiting).finally(() => {
      waiting.writing = undefined
      Object.assign(waiting, { since: performance.now(), isOverfull: false })
      if (waiting.requests.length > 0 || waiting.dropped > 0) schedule()
      else if (accounts.get(account) === waiting) accounts.delete(account)
    }))
  }

  /** Records what waits now. */
  async function write (account: number, waiting: Waiting): Promise<void> {
    let left = waiting.requests.length
    let pauseMs = 0
    do {
      if (pauseMs > 0) await sleep(pauseMs)
      const { dropped } = waiting
      const requests = take(waiting, left)
      left -= requests.length
      waiting.dropped = 0
      const began = performance.now()
      try {
        const described = requests.map(({ describe }) => describe())
        charge(account, began)
        await commit(recordRequests, { account, requests: described, dropped }, { account })
        release(waiting, requests)
      } catch (error) {
        // The deletion of the account has ended its journal.
        const isDeleted = error instanceof Unauthorized
        if (isDeleted) forget(account)
        else waiting.dropped += dropped
        if (hadNoEffect(error)) {
          waiting.requests.unshift(...requests)
        } else {
          // They may have been recorded, and no request is recorded twice.
          release(waiting, requests)
          if (!isDeleted) waiting.dropped += requests.length
        }
        if (isDeleted) return
        throw error
      }
      pauseMs = PAUSE_PER_BATCH * (performance.now() - began)
    } while (left > 0 && waiting.requests.length > 0)
  }

  /** Takes the oldest requests, which are counted until they are released. */
  function take (waiting: Waiting, most: number): CapturedRequest[] {
    let count = 0
    for (let bytes = 0; count < Math.min(most, BATCH_REQUESTS) && bytes < BATCH_BYTES; count++) {
      const request = waiting.requests[count]
      if (request === undefined) break
      bytes += request.bytes
    }
    return waiting.requests.splice(0, count)
  }

  function release (waiting: Waiting, requests: CapturedRequest[]): void {
    resize(waiting, -requests.reduce((sum, request) => sum + request.bytes, 0))
  }

  function forget (account: number): void {
    const waiting = accounts.get(account)
    if (waiting === undefined) return
    release(waiting, waiting.requests.splice(0))
    waiting.dropped = 0
  }

  return {
    add,
    recorded,
    forget,
    async close () {
      clearTimeout(timer)
      await Promise.allSettled([...accounts.keys()].map(recorded))
      clearTimeout(timer)
    }
  }
}

/** Tells whether a transaction was refused, or has given up because another process had locked the journal for long. */
function hadNoEffect (error: unknown): boolean {
  return error instanceof Overloaded || classifyError((error as Error).cause) === 'conflict'
}
