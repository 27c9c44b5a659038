import type { FastifyBaseLogger } from 'fastify'
import type { Commit } from '../database/group-commit/committer.ts'
import type { Instrumentation } from '../monitoring/instrumentation.ts'
import { claimDeliveries, type ClaimedDelivery, type ClaimResult } from './claim.ts'
import type { Completion } from './complete.ts'
import type { Complete } from './completion-buffer.ts'
import { returnedCompletion, sendDelivery, sentCompletion } from './delivery-attempt.ts'
import type { WebhookClient, WebhookResponse } from './http-client.ts'
import { classifyResponse } from './retry-policy.ts'

/** Sends the deliveries of one webhook in this process. */
export interface WebhookDispatcher {
  /** Tells the dispatcher that deliveries may be due. */
  notify: () => void
  /** Returns deliveries that were not sent yet to the queue, also those of a claim in flight. */
  release: () => void
}

/** State and functions that the dispatchers of a worker share. */
export interface DispatchContext {
  /** Identifies the worker in the leases of its deliveries. */
  worker: string
  commit: Commit
  client: WebhookClient
  log: FastifyBaseLogger
  instrumentation?: Instrumentation | undefined
  /** Duration of a lease; `LEASE_MS` by default. */
  leaseMs?: number | undefined
  /** Pauses between attempts; `RETRY_SCHEDULE` by default. */
  retrySchedule?: readonly number[] | undefined
  /** Aborts when the worker stops. */
  stopped: AbortSignal
  /** Number of requests in flight in this process. */
  openRequests: number
  /** Functions that resume the dispatchers that have claimed deliveries and found no free request slot. */
  waitingForSlot: Set<() => void>
  complete: Complete
  /** Makes a stop of the worker wait for the work. */
  track: (work: Promise<void>) => void
  /** Makes the worker poll at this time in ms at the latest. */
  schedulePollBefore: (time: number) => void
}

/** Limits the requests in flight to one webhook. */
const MAX_WEBHOOK_REQUESTS = 8

/** Number of deliveries claimed in advance for a quick receiver, so that its requests do not wait for the database. */
const RESERVE = 120

/** A receiver that responds within this time is quick: its reserve is sent long before the leases expire. */
const QUICK_RESPONSE_MS = 100

/** A request without a response after this time marks the receiver as unresponsive. */
const UNRESPONSIVE_MS = 1_000

/** Limits the requests in flight in this process, all webhooks together: bounds its sockets. */
const MAX_REQUESTS = 500

/** Pause before the next claim when another worker serves the webhook, or after a 410. */
const PAUSE_MS = 1_000

/** Time for which an idle dispatcher remembers that its receiver is unresponsive. */
const UNRESPONSIVE_MEMORY_MS = 600_000

/** Part of a lease that must be left when the last request under it has timed out. */
const LEASE_RESERVE_MS = 2_000

interface Dispatch {
  webhookId: number
  context: DispatchContext
  /** Removes the dispatcher from the worker. */
  onEnd: () => void
  /** Resumes this dispatcher; the same function whenever it waits for a slot. */
  resume: () => void
  /** Claimed deliveries that were not sent yet, in the order in which they are sent. */
  queue: ClaimedDelivery[]
  /** Number of requests in flight to this webhook. */
  openRequests: number
  /** Number of claimed deliveries whose results are not stored yet. */
  inFlight: number
  /** `outdated`: a claim is in flight that may still see the webhook as it was before a change. */
  claim: 'idle' | 'claiming' | 'outdated'
  /** There may be more deliveries to claim. */
  mayHaveMore: boolean
  /** An `unresponsive` receiver gets one request at a time, so that it occupies one connection only. */
  receiver: 'normal' | 'quick' | 'unresponsive'
  /** Time in ms before which the dispatcher claims nothing. */
  notBefore: number
  endTimer: NodeJS.Timeout | undefined
}

/** @param onEnd called when no delivery is left, and nothing about the receiver has to be remembered */
export function createWebhookDispatcher (
  webhookId: number, context: DispatchContext, onEnd: () => void
): WebhookDispatcher {
  const dispatch: Dispatch = {
    webhookId,
    context,
    onEnd,
    resume: () => { sendQueued(dispatch) },
    queue: [],
    openRequests: 0,
    inFlight: 0,
    claim: 'idle',
    mayHaveMore: false,
    receiver: 'normal',
    notBefore: 0,
    endTimer: undefined
  }
  return {
    notify () {
      dispatch.mayHaveMore = true
      if (isPaused(dispatch)) context.schedulePollBefore(dispatch.notBefore)
      else sendQueued(dispatch)
    },
    release: () => { release(dispatch) }
  }
}

function isPaused ({ notBefore }: Dispatch): boolean {
  return notBefore > Date.now()
}

function pause (dispatch: Dispatch): void {
  dispatch.notBefore = Date.now() + PAUSE_MS
  dispatch.context.schedulePollBefore(dispatch.notBefore)
}

/** Claims as many deliveries as can be sent now, and a reserve for a quick receiver. */
function claimMore (dispatch: Dispatch): void {
  const { webhookId, context, receiver, inFlight } = dispatch
  const { worker, commit, leaseMs, stopped, track } = context
  const reserve = receiver === 'quick' ? RESERVE : 0
  const room = (receiver === 'unresponsive' ? 1 : MAX_WEBHOOK_REQUESTS + reserve) - inFlight
  const limit = Math.min(room, MAX_REQUESTS - context.openRequests)
  if (stopped.aborted || dispatch.claim !== 'idle' || !dispatch.mayHaveMore || isPaused(dispatch)) return
  // A claim for a reserve waits until half of the reserve can be claimed.
  if (room < (reserve > 0 ? reserve / 2 : 1) || limit < 1) return
  dispatch.claim = 'claiming'
  dispatch.mayHaveMore = false
  const claim = commit(claimDeliveries, { webhookId, worker, limit, leaseMs }, { account: null })
  track(claim.then(({ record }) => { enqueueClaimed(dispatch, record) }, (error: unknown) => {
    dispatch.claim = 'idle'
    pause(dispatch)
    context.log.warn({ err: error }, 'cannot claim deliveries')
  }))
}

function enqueueClaimed (dispatch: Dispatch, { claimed, hasMore, isBusy }: ClaimResult): void {
  const isOutdated = dispatch.claim === 'outdated'
  dispatch.claim = 'idle'
  dispatch.mayHaveMore ||= hasMore
  dispatch.inFlight += claimed.length
  dispatch.queue.push(...claimed)
  if (isBusy) pause(dispatch)
  if (dispatch.context.stopped.aborted || isPaused(dispatch) || isOutdated) release(dispatch)
  sendQueued(dispatch)
}

/** Sends queued deliveries while there are free slots, then claims more or ends the dispatcher. */
function sendQueued (dispatch: Dispatch): void {
  const { context, queue } = dispatch
  const { client, worker, stopped, track } = context
  while (queue.length > 0 && hasFreeSlot(dispatch) && !stopped.aborted) {
    const delivery = queue.shift()!
    const left = delivery.leasedUntil - Date.now()
    if (left <= 0) {
      // The lease expired: any worker may claim the delivery, so it is neither sent nor returned.
      dispatch.inFlight--
      dispatch.mayHaveMore = true
    } else if (left < client.timeoutMs + LEASE_RESERVE_MS) {
      // The lease may expire before the request ends.
      complete(dispatch, returnedCompletion(delivery, worker))
    } else {
      track(deliver(dispatch, delivery))
    }
  }
  if (queue.length > 0 && context.openRequests >= MAX_REQUESTS) context.waitingForSlot.add(dispatch.resume)
  claimMore(dispatch)
  endIfIdle(dispatch)
}

function hasFreeSlot ({ context, openRequests, receiver }: Dispatch): boolean {
  const limit = receiver === 'unresponsive' ? 1 : MAX_WEBHOOK_REQUESTS
  return context.openRequests < MAX_REQUESTS && openRequests < limit
}

/** Ends the dispatcher when it has no work, once its pause and its memory of the receiver have expired. */
function endIfIdle (dispatch: Dispatch): void {
  clearTimeout(dispatch.endTimer)
  if (dispatch.inFlight > 0 || dispatch.claim !== 'idle' || dispatch.mayHaveMore) return
  if (isPaused(dispatch)) {
    dispatch.endTimer = setTimeout(() => { endIfIdle(dispatch) }, PAUSE_MS).unref()
  } else if (dispatch.receiver === 'unresponsive') {
    dispatch.endTimer = setTimeout(dispatch.onEnd, UNRESPONSIVE_MEMORY_MS).unref()
  } else {
    dispatch.onEnd()
  }
}

async function deliver (dispatch: Dispatch, delivery: ClaimedDelivery): Promise<void> {
  const { context } = dispatch
  const { client, worker, retrySchedule, stopped } = context
  dispatch.openRequests++
  context.openRequests++
  const startedAt = Date.now()
  const response = await sendDelivery(client, delivery, stopped)
  dispatch.openRequests--
  // A free slot again: the worker polls, which notifies the dispatchers that could not claim for lack of slots.
  if (context.openRequests-- === MAX_REQUESTS) context.schedulePollBefore(0)
  if (response === undefined) return complete(dispatch, returnedCompletion(delivery, worker))
  dispatch.receiver = rateReceiver(response, Date.now() - startedAt)
  complete(dispatch, sentCompletion(delivery, response, { worker, startedAt, retrySchedule }))
  // The receiver wants no more events. The webhook is disabled by the end of the pause.
  if (classifyResponse(response.status) === 'gone') pause(dispatch)
  if (dispatch.receiver === 'unresponsive' || isPaused(dispatch)) release(dispatch)
  resumeWaiting(context)
  sendQueued(dispatch)
}

function rateReceiver ({ status }: WebhookResponse, durationMs: number): Dispatch['receiver'] {
  if (durationMs <= QUICK_RESPONSE_MS) return 'quick'
  return status === undefined && durationMs > UNRESPONSIVE_MS ? 'unresponsive' : 'normal'
}

/** Resumes waiting dispatchers, one after the other, until no slot is free. */
function resumeWaiting (context: DispatchContext): void {
  for (const resume of context.waitingForSlot) {
    if (context.openRequests >= MAX_REQUESTS) break
    context.waitingForSlot.delete(resume)
    resume()
  }
}

function complete (dispatch: Dispatch, completion: Completion): void {
  const { instrumentation, track, schedulePollBefore, complete } = dispatch.context
  const { result, attempt } = completion
  instrumentation?.deliveryFinished(result, attempt?.durationMs)
  track(complete(completion).then(() => {
    dispatch.inFlight--
    if (result === 'returned') dispatch.mayHaveMore = true
    if (attempt?.nextTryAt !== undefined) schedulePollBefore(Date.parse(attempt.nextTryAt))
    sendQueued(dispatch)
  }))
}

function release (dispatch: Dispatch): void {
  if (dispatch.claim === 'claiming') dispatch.claim = 'outdated'
  const { worker } = dispatch.context
  for (const delivery of dispatch.queue.splice(0)) complete(dispatch, returnedCompletion(delivery, worker))
}
