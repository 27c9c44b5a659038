import { claimDeliveries, type ClaimedDelivery, type ClaimResult } from './claim.ts'
import type { Completion } from './complete.ts'
import { returnedCompletion, sendDelivery, sentCompletion } from './delivery-attempt.ts'
import type { DispatchContext, WebhookDispatcher } from './dispatch-context.ts'
import { endDeliveries } from './end-unsendable.ts'
import { hostOf, type Caller } from './request-slots.ts'
import { classifyResponse } from './retry-policy.ts'

/** Limits the requests in flight to one webhook. */
const MAX_WEBHOOK_REQUESTS = 8

/** Number of deliveries claimed in advance for a quick receiver, so that its requests do not wait for the database. */
const RESERVE = 120

/** A receiver that responds within this time is quick: its reserve is sent long before the leases expire. */
const QUICK_RESPONSE_MS = 100

/** A request that takes longer, in ms, makes its receiver slow. */
const SLOW_MS = 1_000

/** Pause before the next claim when another worker serves the webhook, or after a 410. */
const PAUSE_MS = 1_000

/** Time for which an idle dispatcher remembers that its receiver is slow. */
const SLOW_MEMORY_MS = 600_000

/** Part of a lease that must be left when the last request under it has timed out. */
const LEASE_RESERVE_MS = 2_000

interface Dispatch {
  webhookId: number
  account: number
  context: DispatchContext
  /** Removes the dispatcher from the worker. */
  onEnd: () => void
  /** Resumes this dispatcher; the same function whenever it waits for a slot. */
  resume: () => void
  /** Claimed deliveries that were not sent yet, in the order in which they are sent. */
  queue: ClaimedDelivery[]
  /** Host of the newest claim; `undefined` before the first one, and after a change of the webhook. */
  host: string | undefined
  /** Number of requests in flight to this webhook. */
  openRequests: number
  /** Number of claimed deliveries whose results are not stored yet. */
  inFlight: number
  /**
   * `outdated`: a claim is in flight that may still see the webhook as it was before a change.
   * `ending`: deliveries that will not be sent are ended, a step at a time, before the next claim.
   */
  claim: 'idle' | 'claiming' | 'outdated' | 'ending'
  /** There may be more deliveries to claim. */
  mayHaveMore: boolean
  /** Deliveries of the disabled webhook may have expired. */
  mayHaveExpired: boolean
  /** A receiver that is slow, or has not been called yet, gets one request at a time and so occupies one slot. */
  receiver: 'new' | 'slow' | 'normal' | 'quick'
  /** Time before which the dispatcher claims nothing, by `performance.now()`. */
  notBefore: number
  endTimer: NodeJS.Timeout | undefined
}

/** @param onEnd called when no delivery is left, and nothing about the receiver has to be remembered */
export function createWebhookDispatcher (
  { webhookId, account }: Pick<Dispatch, 'webhookId' | 'account'>, context: DispatchContext, onEnd: () => void
): WebhookDispatcher {
  const dispatch: Dispatch = {
    webhookId,
    account,
    context,
    onEnd,
    // It may have found a slot before, and ended: by now, the worker can have another dispatcher for the webhook.
    resume: () => { if (dispatch.queue.length > 0 || dispatch.mayHaveMore) sendQueued(dispatch) },
    queue: [],
    host: undefined,
    openRequests: 0,
    inFlight: 0,
    claim: 'idle',
    mayHaveMore: false,
    mayHaveExpired: false,
    receiver: 'new',
    notBefore: 0,
    endTimer: undefined
  }
  return {
    notify (mayHaveExpired) {
      dispatch.mayHaveMore = true
      dispatch.mayHaveExpired ||= mayHaveExpired
      if (isPaused(dispatch)) context.schedulePollWithin(dispatch.notBefore - performance.now())
      else sendQueued(dispatch)
    },
    release () {
      dispatch.host = undefined
      release(dispatch)
    }
  }
}

function isPaused ({ notBefore }: Dispatch): boolean {
  return notBefore > performance.now()
}

function pause (dispatch: Dispatch): void {
  dispatch.notBefore = performance.now() + PAUSE_MS
  dispatch.context.schedulePollWithin(PAUSE_MS)
}

/** Claims as many deliveries as can be sent now, and a reserve for a quick receiver. */
function claimMore (dispatch: Dispatch): void {
  const { webhookId, account, context, receiver, inFlight } = dispatch
  const { worker, commit, leaseMs, slots, stopped, track } = context
  if (stopped.aborted || dispatch.claim !== 'idle' || !dispatch.mayHaveMore || isPaused(dispatch)) return
  const reserve = receiver === 'quick' ? RESERVE : 0
  const room = requestLimit(dispatch) + reserve - inFlight
  // A claim for a reserve waits until half of the reserve can be claimed.
  if (room < (reserve > 0 ? reserve / 2 : 1)) return
  const free = slots.freeFor(dispatch)
  if (free < 1) return slots.wait(callerOf(dispatch), dispatch.resume)
  dispatch.claim = 'claiming'
  dispatch.mayHaveMore = false
  const limit = Math.min(room, free + reserve)
  const claim = commit(claimDeliveries, { webhookId, account, worker, limit, leaseMs }, { account: null })
  track(claim.then(({ record }) => { enqueueClaimed(dispatch, record) }, (error: unknown) => {
    dispatch.claim = 'idle'
    pause(dispatch)
    context.log.warn({ err: error }, 'cannot claim deliveries')
  }))
}

function enqueueClaimed (dispatch: Dispatch, { claimed, hasMore, ending, isBusy }: ClaimResult): void {
  const isOutdated = dispatch.claim === 'outdated'
  dispatch.claim = 'idle'
  if (ending === 'all' || (ending === 'expired' && dispatch.mayHaveExpired)) endUnsendable(dispatch)
  dispatch.mayHaveMore ||= hasMore
  dispatch.inFlight += claimed.length
  dispatch.queue.push(...claimed)
  if (claimed.length > 0) dispatch.host = hostOf(claimed[0]!.url)
  if (isBusy) pause(dispatch)
  if (dispatch.context.stopped.aborted || isPaused(dispatch) || isOutdated) release(dispatch)
  sendQueued(dispatch)
}

/** Ends the deliveries that will not be sent. */
function endUnsendable (dispatch: Dispatch): void {
  const { webhookId, account, context: { commit, runEnding, track, log } } = dispatch
  dispatch.claim = 'ending'
  dispatch.mayHaveExpired = false
  const step = async (): Promise<boolean> =>
    (await commit(endDeliveries, { webhookId, account }, { account: null })).record
  track(runEnding(step).then(() => {
    dispatch.claim = 'idle'
    sendQueued(dispatch)
  }, (error: unknown) => {
    dispatch.claim = 'idle'
    pause(dispatch)
    log.warn({ err: error }, 'cannot end deliveries')
  }))
}

/** Sends queued deliveries while there are free slots, then claims more or ends the dispatcher. */
function sendQueued (dispatch: Dispatch): void {
  const { context, queue } = dispatch
  const { client, slots, stopped, track } = context
  while (queue.length > 0 && hasFreeSlot(dispatch) && !stopped.aborted) {
    const delivery = queue.shift()!
    const left = delivery.leasedUntil - Date.now()
    if (left <= 0) {
      // The lease expired: any worker may claim the delivery, so it is neither sent nor returned.
      dispatch.inFlight--
      dispatch.mayHaveMore = true
    } else if (left < client.timeoutMs + LEASE_RESERVE_MS) {
      // The lease may expire before the request ends.
      complete(dispatch, returnedCompletion(delivery))
    } else {
      track(deliver(dispatch, delivery))
    }
  }
  if (queue.length > 0 && slots.freeFor(dispatch) < 1) slots.wait(callerOf(dispatch), dispatch.resume)
  claimMore(dispatch)
  endIfIdle(dispatch)
}

function hasFreeSlot (dispatch: Dispatch): boolean {
  const { context: { slots }, openRequests } = dispatch
  return openRequests < requestLimit(dispatch) && slots.freeFor(dispatch) > 0
}

/** Returns the caller of the next request. The dispatcher itself may have another host by then. */
function callerOf ({ account, host }: Dispatch): Caller {
  return { account, host }
}

function requestLimit ({ receiver }: Dispatch): number {
  return receiver === 'new' || receiver === 'slow' ? 1 : MAX_WEBHOOK_REQUESTS
}

/** Ends the dispatcher when it has no work, once its pause and its memory of the receiver have expired. */
function endIfIdle (dispatch: Dispatch): void {
  clearTimeout(dispatch.endTimer)
  if (dispatch.inFlight > 0 || dispatch.claim !== 'idle') return
  if (isPaused(dispatch)) {
    dispatch.endTimer = setTimeout(() => { sendQueued(dispatch) }, PAUSE_MS).unref()
  } else if (dispatch.mayHaveMore) {
    // It waits for a slot, or the worker stops.
  } else if (dispatch.receiver === 'slow') {
    dispatch.endTimer = setTimeout(dispatch.onEnd, SLOW_MEMORY_MS).unref()
  } else {
    dispatch.onEnd()
  }
}

async function deliver (dispatch: Dispatch, delivery: ClaimedDelivery): Promise<void> {
  const { context } = dispatch
  const { client, aroundCall, retrySchedule, slowMs, slots, stopped } = context
  const caller = callerOf(dispatch)
  dispatch.openRequests++
  slots.take(caller)
  const startedAt = Date.now()
  const began = performance.now()
  const response = await sendDelivery(client, delivery, stopped, aroundCall)
  const durationMs = Math.round(performance.now() - began)
  dispatch.openRequests--
  if (response !== undefined) dispatch.receiver = rateReceiver(durationMs, slowMs)
  slots.free(caller)
  if (response === undefined) return complete(dispatch, returnedCompletion(delivery))
  complete(dispatch, sentCompletion(delivery, response, { startedAt, durationMs, retrySchedule }), response.onStored)
  // The receiver wants no more events. The webhook is disabled by the end of the pause.
  if (classifyResponse(response.status) === 'gone') pause(dispatch)
  if (dispatch.receiver === 'slow' || isPaused(dispatch)) release(dispatch)
  sendQueued(dispatch)
}

function rateReceiver (durationMs: number, slowMs = SLOW_MS): Dispatch['receiver'] {
  if (durationMs <= QUICK_RESPONSE_MS) return 'quick'
  return durationMs > slowMs ? 'slow' : 'normal'
}

function complete (dispatch: Dispatch, completion: Completion, onStored?: () => Promise<void>): void {
  const { instrumentation, track, schedulePollWithin, complete } = dispatch.context
  const { result, attempt } = completion
  instrumentation?.deliveryFinished(result, attempt?.durationMs)
  const stored = complete(completion)
  if (onStored !== undefined) track(stored.then(onStored))
  track(stored.then(() => {
    dispatch.inFlight--
    if (result === 'returned') dispatch.mayHaveMore = true
    if (attempt?.nextTryAt !== undefined) schedulePollWithin(Date.parse(attempt.nextTryAt) - Date.now())
    sendQueued(dispatch)
  }))
}

function release (dispatch: Dispatch): void {
  if (dispatch.claim === 'claiming') dispatch.claim = 'outdated'
  for (const delivery of dispatch.queue.splice(0)) complete(dispatch, returnedCompletion(delivery))
}
