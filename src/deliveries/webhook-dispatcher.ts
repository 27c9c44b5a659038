import type { FastifyBaseLogger } from 'fastify'
import type { Commit } from '../database/group-commit/committer.ts'
import type { Instrumentation } from '../monitoring/instrumentation.ts'
import { CALL_MS, type WebhookResponse, type WebhookClient } from './http-client.ts'
import { classifyResponse, nextAttemptAt, retryAfterOf } from './retry-policy.ts'
import type { Completion } from './complete.ts'
import { claimDeliveries, type ClaimedDelivery } from './claim.ts'

/** One webhook's deliveries in this process. */
export interface WebhookDispatcher {
  /** There may be something due. */
  offer: () => void
  /** Gives back what was not sent yet, also what is just being taken. */
  release: () => void
}

/** What the lanes of a worker share. */
export interface DispatchContext {
  /** Names the worker in the leases of what it took. */
  worker: string
  commit: Commit
  caller: WebhookClient
  log: FastifyBaseLogger
  instrumentation?: Instrumentation | undefined
  /** Aborted when the worker stops. */
  stopped: AbortSignal
  /** Calls of this process that are under way. */
  calls: number
  /** Lanes that have something to send and found no room, as what they go on with. */
  starved: Set<() => void>
  /** Writes down what became of a delivery; settles in the end, whatever happens. */
  write: (settlement: Completion) => Promise<void>
  /** A stop waits for this. */
  track: (work: Promise<void>) => void
  /** Something is to be looked for by then, in ms. */
  lookBy: (time: number) => void
}

/** Calls to one webhook at a time. */
const AT_ONCE = 8

/** Taken in reserve for a webhook that answers quickly, so that its calls need not wait for the database. */
const RESERVE = 120

/** A webhook that answers within this, in ms, is quick: its reserve is sent before long. */
const QUICK_MS = 100

/** A call that met no answer for this long, in ms, was a silent one. */
const SILENT_MS = 1_000

/** Calls of this process at a time, all webhooks together: bounds its sockets. */
const CALLS = 500

/** A webhook is left alone this long, in ms, when another worker is at it or when it has just said 410. */
const REST_MS = 1_000

/** That the last call to a webhook was silent is remembered this long, in ms, while nothing is due. */
const SILENCE_MS = 600_000

/** What is left of a lease when the last call under it must have ended, in ms. */
const LEASE_RESERVE_MS = 2_000

/** @param ended called when there is nothing left to know about the webhook */
export function createWebhookDispatcher (webhookId: number, context: DispatchContext, ended: () => void): WebhookDispatcher {
  const { worker, commit, caller, log, stopped, write, track, lookBy } = context
  /** Taken, and not yet sent; in the order in which they are to be. */
  const queue: ClaimedDelivery[] = []
  let underWay = 0
  /** Taken, and not yet written down what became of them. */
  let held = 0
  let taking = false
  /** What is being taken is to be given back: it may be for a webhook as it was before. */
  let outdated = false
  /** There may be more to take. */
  let more = false
  /** The last answer came within `QUICK_MS`. */
  let quick = false
  /** The last call met no answer: one at a time, so that a receiver that hangs holds one connection. */
  let silent = false
  let notBefore = 0
  let forgetting: NodeJS.Timeout | undefined

  const resting = (): boolean => notBefore > Date.now()

  function rest (): void {
    notBefore = Date.now() + REST_MS
    lookBy(notBefore)
  }

  /** Takes as much as can be sent now; of a quick webhook, a little in reserve. */
  function take (): void {
    const room = silent ? 1 : AT_ONCE + (quick ? RESERVE : 0)
    const want = Math.min(room - held, CALLS - context.calls)
    if (stopped.aborted || taking || !more || resting() || room - held < (quick ? RESERVE / 2 : 1) || want < 1) return
    taking = true
    outdated = false
    more = false
    track(commit(claimDeliveries, { webhookId, worker, want }, { account: null }).then(({ record }) => {
      taking = false
      more ||= record.more
      held += record.taken.length
      queue.push(...record.taken)
      if (record.busy) rest()
      if (stopped.aborted || resting() || outdated) release()
      go()
    }, (error: unknown) => {
      taking = false
      rest()
      log.warn({ err: error }, 'could not take deliveries')
    }))
  }

  function go (): void {
    while (queue.length > 0 && context.calls < CALLS && underWay < (silent ? 1 : AT_ONCE) && !stopped.aborted) {
      const delivery = queue.shift()!
      const left = delivery.leasedUntil - Date.now()
      if (left <= 0) {
        // Anybody's by now, and to be taken anew.
        held--
        more = true
      } else if (left < CALL_MS + LEASE_RESERVE_MS) {
        // Its lease may end before its call does.
        settle(released(delivery))
      } else {
        track(deliver(delivery))
      }
    }
    if (queue.length > 0 && context.calls >= CALLS) context.starved.add(go)
    take()
    leave()
  }

  /** Ends the lane that has nothing to do, once there is nothing to remember either. */
  function leave (): void {
    clearTimeout(forgetting)
    if (held > 0 || taking || more) return
    if (resting()) forgetting = setTimeout(leave, REST_MS).unref()
    else if (silent) forgetting = setTimeout(ended, SILENCE_MS).unref()
    else ended()
  }

  async function deliver (delivery: ClaimedDelivery): Promise<void> {
    underWay++
    context.calls++
    const began = Date.now()
    const answer = await call(delivery)
    underWay--
    // Lanes that found no room left are looked at again.
    if (context.calls-- === CALLS) lookBy(0)
    if (answer === undefined) return settle(released(delivery))
    const ms = Date.now() - began
    quick = ms <= QUICK_MS
    silent = answer.status === undefined && ms > SILENT_MS
    settle(settlementOf(delivery, answer, began))
    // It wants no more; it is switched off by the time it is looked at again.
    if (classifyResponse(answer.status) === 'gone') rest()
    if (silent || resting()) release()
    for (const next of context.starved) {
      if (context.calls >= CALLS) break
      context.starved.delete(next)
      next()
    }
    go()
  }

  /** @returns `undefined` when it was dropped, because the worker stops */
  async function call (delivery: ClaimedDelivery): Promise<WebhookResponse | undefined> {
    const { url, body, secrets } = delivery
    if (body === undefined) return { error: 'The event is no longer held' }
    try {
      return await caller.call({ url, id: idOf(delivery), body, secrets }, stopped)
    } catch {
      return undefined
    }
  }

  function settle (settlement: Completion): void {
    context.instrumentation?.deliveryFinished(settlement.result, settlement.attempt?.durationMs)
    track(write(settlement).then(() => {
      held--
      if (settlement.result === 'released') more = true
      if (settlement.attempt?.nextTryAt !== undefined) lookBy(Date.parse(settlement.attempt.nextTryAt))
      go()
    }))
  }

  function release (): void {
    outdated = taking
    for (const delivery of queue.splice(0)) settle(released(delivery))
  }

  function released ({ id, message, url }: ClaimedDelivery): Completion {
    return { id, webhookId, worker, message, url, result: 'released' }
  }

  function settlementOf (delivery: ClaimedDelivery, { status, error, retryAfter }: WebhookResponse, began: number): Completion {
    const now = Date.now()
    const { attempts, giveUpAt, event } = delivery
    const judged = classifyResponse(status)
    const once = event === 0 || delivery.body === undefined
    const at = judged !== 'refused' || once
      ? undefined
      : nextAttemptAt({ attempts, now, expiresAt: giveUpAt, retryAfter: retryAfterOf(retryAfter, now), random: Math.random() })
    return {
      ...released(delivery),
      result: judged === 'refused' ? at === undefined ? 'givenUp' : 'again' : judged,
      attempt: {
        eventId: event,
        at: new Date(began).toISOString(),
        ...(status === undefined ? {} : { status }),
        ...(error === undefined ? {} : { error }),
        durationMs: now - began,
        ...(at === undefined ? {} : { nextTryAt: new Date(at).toISOString() })
      }
    }
  }

  return {
    offer () {
      more = true
      if (resting()) lookBy(notBefore)
      else go()
    },
    release
  }
}

/** Unique beyond the account, and the same whenever the event is sent. */
function idOf ({ account, event, id }: ClaimedDelivery): string {
  return event === 0 ? `evt_${account}_test_${id}` : `evt_${account}_${event}`
}
