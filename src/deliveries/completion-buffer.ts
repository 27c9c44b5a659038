import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import type { Commit } from '../database/group-commit/committer.ts'
import { completeDeliveries, type Completion } from './complete.ts'

/** Stores the outcome of a delivery. Never rejects. */
export type Complete = (completion: Completion) => Promise<void>

/** Time for which completions are collected, so that many share one transaction. */
const FLUSH_DELAY_MS = 20

/** Limits the attempts to store a completion. After the last one, the lease expires and the event is sent again. */
const MAX_ATTEMPTS = 3
const RETRY_DELAY_MS = 1_000

/** Creates a function that stores completions after `FLUSH_DELAY_MS`, or at once when the worker stops. */
export function createCompletionBuffer (commit: Commit, log: FastifyBaseLogger, stopped: AbortSignal): Complete {
  let buffered: Completion[] = []
  let flushing: Promise<void> | undefined

  async function flush (): Promise<void> {
    await sleep(stopped.aborted ? 0 : FLUSH_DELAY_MS)
    const completions = buffered
    buffered = []
    flushing = undefined
    await Promise.all(completions.map(store))
  }

  async function store (completion: Completion): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        await commit(completeDeliveries, completion, { account: null })
        return
      } catch (error) {
        log.warn({ err: error }, 'cannot store the outcome of a delivery')
        if (attempt === MAX_ATTEMPTS || stopped.aborted) return
      }
      await sleep(RETRY_DELAY_MS, undefined, { ref: false })
    }
  }

  return async (completion) => {
    buffered.push(completion)
    flushing ??= flush()
    await flushing
  }
}
