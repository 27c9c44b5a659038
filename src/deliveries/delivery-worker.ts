import { randomBytes } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { AccountClocks } from '../database/account-clocks.ts'
import { getOrAdd } from '../database/get-or-add.ts'
import { createPace } from '../database/job.ts'
import type { Read } from '../database/reads/query.ts'
import { deliverUnsubscribedMessages } from '../messages/delivery-status.ts'
import { createCompletionBuffer } from './completion-buffer.ts'
import type { DispatchContext, SendingOptions, WebhookDispatcher } from './dispatch-context.ts'
import { findDueWork, type DueWebhook } from './find-due.ts'
import { createRequestSlots } from './request-slots.ts'
import { createWebhookDispatcher } from './webhook-dispatcher.ts'

export interface DeliveryWorker {
  /** Tells the worker that deliveries may be due, and which webhooks were changed or deleted. */
  wake: (changed: number[]) => void
  /** Aborts the requests in flight and returns their deliveries to the queue. */
  close: () => Promise<void>
}

export interface WorkerOptions extends SendingOptions {
  read: Read
  /** The clocks of accounts; by default, all are in real time. */
  clocks?: AccountClocks
}

/** Minimum pause between two polls. After a long poll it is a multiple of its time: polls take a fifth of the time. */
const MIN_POLL_INTERVAL_MS = 25
const PAUSE_PER_POLL = 4

/** Limits this pause on a slow database: deliveries start soon all the same. It follows a poll that failed, too. */
const MAX_POLL_PAUSE_MS = 500

/** Maximum pause between two polls: a notification may get lost. */
const MAX_POLL_INTERVAL_MS = 5_000

/** Interval of checks of a webhook that another worker serves: that worker may end, and return its deliveries. */
const SERVED_CHECK_INTERVAL_MS = 1_000

/** Interval of checks of a disabled webhook: the first of its deliveries is not always the first to expire. */
const DISABLED_CHECK_INTERVAL_MS = 3_600_000

/** Limits these checks, of which each is two commands, to a few milliseconds: the worker may see 20,000 at once. */
const MAX_CHECKS_PER_POLL = 8

/** Limits the time that a stop waits for the database. Leases return to the queue what it could not store. */
const STOP_TIMEOUT_MS = 2_000

interface Worker {
  read: Read
  clocks: AccountClocks
  context: DispatchContext
  /** By webhook. */
  dispatchers: Map<number, WebhookDispatcher>
  /** Times of the last checks of disabled webhooks, by `performance.now()`, the earliest first. */
  disabledCheckedAt: Map<number, number>
  /** Number of these that the current poll may still check. The next passes check the others. */
  checksLeft: number
  /** Delivery of messages without webhooks, beside the polls, which start it. */
  unsubscribed: {
    state: 'idle' | 'running'
    /** Position of the newest message that a poll has seen since it began; 0 without one. */
    upTo: number
  }
  /** Its times are by `performance.now()`: the clock of the machine may be set. */
  polls: {
    /** Id of the webhook after which the next poll goes on; 0 before a new pass over all webhooks. */
    after: number
    /** Id of the newest delivery at the last poll; `undefined` before the first. */
    seen: number | undefined
    /** The poll in flight. While there is one, no poll is scheduled. */
    current: Promise<void> | undefined
    /** Time before which no poll starts. */
    notBefore: number
    /** Time at which work is known to be due. */
    dueAt: number
    /** Time at which `timer` starts a poll. */
    scheduledAt: number
    timer: NodeJS.Timeout | undefined
  }
  stop: AbortController
  /** Work in flight that a stop waits for. */
  pending: Set<Promise<void>>
}

/**
 * Creates a worker that claims due deliveries, sends them and stores their results, and that delivers messages
 * without webhooks. Its state in memory may be lost at any time: the rows of the deliveries are the queue.
 */
export function createDeliveryWorker (options: WorkerOptions): DeliveryWorker {
  const { read, clocks = new AccountClocks(), commit, client, log } = options
  const { instrumentation, aroundCall, leaseMs, retrySchedule } = options
  const stop = new AbortController()
  // Every request in flight adds a listener.
  setMaxListeners(0, stop.signal)
  const pending = new Set<Promise<void>>()
  const context: DispatchContext = {
    worker: randomBytes(8).toString('hex'),
    commit,
    client,
    log,
    instrumentation,
    aroundCall,
    leaseMs,
    retrySchedule,
    stopped: stop.signal,
    slots: createRequestSlots(),
    runEnding: createPace(stop.signal),
    complete: createCompletionBuffer(commit, log, stop.signal),
    track (work) {
      pending.add(work)
      work
        .catch((error: unknown) => { log.error({ err: error }, 'a delivery failed') })
        .finally(() => { pending.delete(work) })
    },
    schedulePollWithin: (ms) => { schedulePollWithin(worker, ms) }
  }
  const worker: Worker = {
    read,
    clocks,
    context,
    dispatchers: new Map(),
    disabledCheckedAt: new Map(),
    checksLeft: 0,
    unsubscribed: { state: 'idle', upTo: 0 },
    polls: {
      after: 0,
      seen: undefined,
      current: undefined,
      notBefore: 0,
      dueAt: Infinity,
      scheduledAt: Infinity,
      timer: undefined
    },
    stop,
    pending
  }
  schedulePollWithin(worker, 0)
  return {
    wake (changed) {
      for (const id of changed) worker.dispatchers.get(id)?.release()
      schedulePollWithin(worker, 0)
    },
    close: async () => { await close(worker) }
  }
}

function schedulePollWithin (worker: Worker, ms: number): void {
  const { polls } = worker
  polls.dueAt = Math.min(polls.dueAt, performance.now() + ms)
  if (polls.current === undefined) schedulePoll(worker)
}

function schedulePoll (worker: Worker): void {
  const { polls, stop } = worker
  const now = performance.now()
  const time = Math.max(polls.notBefore, polls.after > 0 ? now : Math.min(polls.dueAt, now + MAX_POLL_INTERVAL_MS))
  if (time >= polls.scheduledAt || stop.signal.aborted) return
  polls.scheduledAt = time
  clearTimeout(polls.timer)
  polls.timer = setTimeout(() => { startPoll(worker) }, Math.max(0, time - now))
  polls.timer.unref()
}

function startPoll (worker: Worker): void {
  const { polls, context: { log } } = worker
  polls.scheduledAt = Infinity
  // A time that became known during a pass is that of a webhook behind it.
  if (polls.after === 0) polls.dueAt = Infinity
  polls.current = poll(worker).catch((error: unknown) => {
    polls.notBefore = performance.now() + MAX_POLL_PAUSE_MS
    log.warn({ err: error }, 'cannot look for due deliveries')
  }).finally(() => {
    polls.current = undefined
    schedulePoll(worker)
  })
}

async function poll (worker: Worker): Promise<void> {
  const began = performance.now()
  const { read, clocks, context, unsubscribed, polls, polls: { after, seen } } = worker
  const found = await findDueWork(read, clocks, context.worker, after, seen)
  const { newestMessage, webhooks, fresh, next } = found
  const ended = performance.now()
  const pause = Math.max(MIN_POLL_INTERVAL_MS, Math.min(PAUSE_PER_POLL * (ended - began), MAX_POLL_PAUSE_MS))
  polls.notBefore = ended + pause
  polls.after = next
  polls.seen = found.newest
  worker.checksLeft = MAX_CHECKS_PER_POLL
  for (const webhook of [...webhooks, ...fresh].toSorted((a, b) => a.at - b.at)) notifyWhenDue(worker, webhook)
  unsubscribed.upTo = newestMessage
  if (newestMessage > 0 && unsubscribed.state === 'idle') context.track(deliverUnsubscribed(worker))
}

function notifyWhenDue (worker: Worker, webhook: DueWebhook): void {
  const now = Date.now()
  const [dueIn, leaseLeft] = [webhook.at - now, webhook.leasedUntil - now]
  if (dueIn > 0 && !checksDisabled(worker, webhook)) return schedulePollWithin(worker, dueIn)
  // A claim would lock the webhook, and get nothing.
  if (leaseLeft > 0) return schedulePollWithin(worker, Math.min(leaseLeft, SERVED_CHECK_INTERVAL_MS))
  dispatcherOf(worker, webhook).notify(webhook.disabled)
}

function checksDisabled (worker: Worker, { id, disabled }: DueWebhook): boolean {
  const { disabledCheckedAt, checksLeft } = worker
  if (!disabled || checksLeft === 0) return false
  const now = performance.now()
  for (const [other, at] of disabledCheckedAt) {
    if (now < at + DISABLED_CHECK_INTERVAL_MS) break
    disabledCheckedAt.delete(other)
  }
  if (disabledCheckedAt.has(id)) return false
  worker.checksLeft--
  disabledCheckedAt.set(id, now)
  return true
}

/**
 * Delivers some of the messages that no webhook subscribes to; the next poll goes on. It must keep up with clients, so
 * it has no pause of its own: with that of jobs, 3,900 messages waited after 9 s of 1,500 a second (PostgreSQL).
 */
async function deliverUnsubscribed ({ unsubscribed, context }: Worker): Promise<void> {
  const { upTo } = unsubscribed
  unsubscribed.state = 'running'
  unsubscribed.upTo = 0
  try {
    const { record: hasMore } = await context.commit(deliverUnsubscribedMessages, { upTo }, { account: null })
    if (hasMore || unsubscribed.upTo > 0) context.schedulePollWithin(0)
  } catch (error) {
    context.log.warn({ err: error }, 'cannot deliver messages that no webhook subscribes to')
  }
  unsubscribed.state = 'idle'
}

function dispatcherOf ({ dispatchers, context }: Worker, { id: webhookId, account }: DueWebhook): WebhookDispatcher {
  return getOrAdd(dispatchers, webhookId, () =>
    createWebhookDispatcher({ webhookId, account }, context, () => { dispatchers.delete(webhookId) }))
}

async function close (worker: Worker): Promise<void> {
  const { polls, stop, context: { client } } = worker
  stop.abort()
  clearTimeout(polls.timer)
  await Promise.race([finish(worker), sleep(STOP_TIMEOUT_MS, undefined, { ref: false })])
  client.close()
}

async function finish ({ polls, dispatchers, pending }: Worker): Promise<void> {
  await polls.current
  for (const dispatcher of dispatchers.values()) dispatcher.release()
  while (pending.size > 0) await Promise.allSettled(pending)
}
