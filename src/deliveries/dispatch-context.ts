import type { FastifyBaseLogger } from 'fastify'
import type { Commit } from '../database/group-commit/committer.ts'
import type { RunSteps } from '../database/job.ts'
import type { Instrumentation } from '../monitoring/instrumentation.ts'
import type { Complete } from './completion-buffer.ts'
import type { AroundCall } from './delivery-attempt.ts'
import type { WebhookClient } from './http-client.ts'
import type { RequestSlots } from './request-slots.ts'

/** Sends the deliveries of one webhook in this process. */
export interface WebhookDispatcher {
  /**
   * Tells the dispatcher that deliveries may be due.
   *
   * @param mayHaveExpired those of a disabled webhook may have expired; to look for them takes long if many wait
   */
  notify: (mayHaveExpired: boolean) => void
  /** Returns deliveries that were not sent yet to the queue, also those of a claim in flight. */
  release: () => void
}

/** What it takes to send deliveries. */
export interface SendingOptions {
  commit: Commit
  client: WebhookClient
  log: FastifyBaseLogger
  instrumentation?: Instrumentation | undefined
  /** Returns what makes the call of a delivery; by default, the call itself. */
  aroundCall?: AroundCall | undefined
  /** Duration of a lease; `LEASE_MS` by default. */
  leaseMs?: number | undefined
  /** Pauses between attempts; `RETRY_SCHEDULE` by default. */
  retrySchedule?: readonly number[] | undefined
}

/** State and functions that the dispatchers of a worker share. */
export interface DispatchContext extends SendingOptions {
  /** Name of the worker in the leases of its deliveries. */
  worker: string
  /** A receiver that takes longer for a request, with or without a response, is slow; `SLOW_MS` by default. */
  slowMs?: number
  /** Aborts when the worker stops. */
  stopped: AbortSignal
  /** The requests in flight in this process. */
  slots: RequestSlots
  /** The pace of steps that end deliveries, for all webhooks together. */
  runEnding: RunSteps
  complete: Complete
  /** Makes a stop of the worker wait for the work. */
  track: (work: Promise<void>) => void
  /** Makes the worker poll within this time in ms. */
  schedulePollWithin: (ms: number) => void
}
