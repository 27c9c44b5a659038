import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import type { Commit } from '../database/group-commit/committer.ts'
import { completeDeliveries, type Completion } from './complete.ts'

/** What becomes of calls is written down together, after this long, in ms: many for the price of one. */
const GATHER_MS = 20

/** Writing down what became of a call is tried this often; after that its lease runs out and it is made again. */
const ATTEMPTS = 3
const PAUSE_MS = 1_000

/** Writes settlements down, gathered for a moment; once the worker stops, at once. Never fails. */
export function createCompletionBuffer (commit: Commit, log: FastifyBaseLogger, stopped: AbortSignal): (settlement: Completion) => Promise<void> {
  let gathered: Completion[] = []
  let writing: Promise<void> | undefined

  async function writeAll (): Promise<void> {
    await sleep(stopped.aborted ? 0 : GATHER_MS)
    const settlements = gathered
    gathered = []
    writing = undefined
    await Promise.all(settlements.map(write))
  }

  async function write (settlement: Completion): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        await commit(completeDeliveries, settlement, { account: null })
        return
      } catch (error) {
        log.warn({ err: error }, 'could not write down a delivery')
        if (attempt === ATTEMPTS || stopped.aborted) return
      }
      await sleep(PAUSE_MS, undefined, { ref: false })
    }
  }

  return async (settlement) => {
    gathered.push(settlement)
    writing ??= writeAll()
    await writing
  }
}
