import { randomBytes } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import type { Commit } from '../database/group-commit/committer.ts'
import type { Read } from '../database/read-batching.ts'
import type { Instrumentation } from '../monitoring/instrumentation.ts'
import { deliverUnsubscribedMessages } from '../messages/delivery-status.ts'
import type { WebhookClient } from './http-client.ts'
import { findDue } from './find-due.ts'
import { createWebhookDispatcher, type WebhookDispatcher, type DispatchContext } from './webhook-dispatcher.ts'
import { createCompletionBuffer } from './completion-buffer.ts'

export interface DeliveryWorker {
  /** There may be something to deliver; these webhooks changed or went. */
  wake: (changed: number[]) => void
  /** Drops the calls under way and gives back what they were for, to be sent again later. */
  close: () => Promise<void>
}

export interface WorkerOptions {
  read: Read
  commit: Commit
  caller: WebhookClient
  log: FastifyBaseLogger
  instrumentation?: Instrumentation | undefined
}

/** Least pause between two looks at the queue, in ms, and for each webhook that it showed: looks take a small share of the time. */
const LOOK_MS = 25
const LOOK_WEBHOOK_MS = 0.05

/** The queue is looked at this often without being woken, in ms: a notification may get lost. */
const POLL_MS = 5_000

/** What waits for a webhook that is switched off is looked through this often, in ms: not the first of it ends first. */
const DISABLED_MS = 3_600_000

/** A stop waits this long for the database, in ms; what it did not take back is anybody's when the leases end. */
const STOP_MS = 2_000

/**
 * Delivers: takes what is due, calls the webhooks, writes down what became of it; and settles the messages
 * that no webhook is asked about. Whatever it knows it could forget: the deliveries' rows are the queue.
 */
export function createDeliveryWorker ({ read, commit, caller, log, instrumentation }: WorkerOptions): DeliveryWorker {
  const lanes = new Map<number, WebhookDispatcher>()
  /** When a webhook that is switched off was last looked at, in ms. */
  const offered = new Map<number, number>()
  let settling = false
  /** The newest message that a look saw since settling began; 0 when it saw none. */
  let unsettled = 0
  const stop = new AbortController()
  // Every call under way listens.
  setMaxListeners(0, stop.signal)
  const work = new Set<Promise<void>>()
  const context: DispatchContext = {
    worker: randomBytes(8).toString('hex'),
    commit,
    caller,
    log,
    instrumentation,
    stopped: stop.signal,
    calls: 0,
    starved: new Set(),
    write: createCompletionBuffer(commit, log, stop.signal),
    track (promise) {
      work.add(promise)
      promise.catch((error: unknown) => { log.error({ err: error }, 'a delivery failed') }).finally(() => { work.delete(promise) })
    },
    lookBy
  }
  let looking: Promise<void> | undefined
  /** No look comes before; the next one is planned; something known is due, each in ms. */
  let earliest = 0
  let planned = Infinity
  let due = Infinity
  let timer: NodeJS.Timeout | undefined

  function lookBy (time: number): void {
    due = Math.min(due, time)
    if (looking === undefined) plan()
  }

  function plan (): void {
    const now = Date.now()
    const time = Math.max(earliest, Math.min(due, now + POLL_MS))
    if (time >= planned || stop.signal.aborted) return
    planned = time
    clearTimeout(timer)
    timer = setTimeout(() => {
      planned = due = Infinity
      looking = look().catch((error: unknown) => {
        log.warn({ err: error }, 'could not look for deliveries')
      }).finally(() => {
        looking = undefined
        plan()
      })
    }, Math.max(0, time - now))
    timer.unref()
  }

  async function look (): Promise<void> {
    const { messages, webhooks } = await findDue(read)
    const now = Date.now()
    earliest = now + LOOK_MS + LOOK_WEBHOOK_MS * webhooks.length
    for (const { id, at, disabled } of webhooks) {
      const by = disabled ? Math.min(at, (offered.get(id) ?? 0) + DISABLED_MS) : at
      if (by > now) {
        lookBy(by)
      } else {
        if (disabled) offered.set(id, now)
        laneOf(id).offer()
      }
    }
    const waiting = new Set(webhooks.filter(({ disabled }) => disabled).map(({ id }) => id))
    for (const id of offered.keys()) if (!waiting.has(id)) offered.delete(id)
    if (messages > 0) {
      unsettled = Math.max(unsettled, messages)
      if (!settling) context.track(settleAll())
    }
  }

  /** Beside the looks, because a backlog of messages takes a while. */
  async function settleAll (): Promise<void> {
    settling = true
    while (unsettled > 0 && !stop.signal.aborted) {
      const upTo = unsettled
      unsettled = 0
      try {
        while ((await commit(deliverUnsubscribedMessages, { upTo }, { account: null })).record && !stop.signal.aborted) continue
      } catch (error) {
        log.warn({ err: error }, 'could not settle messages')
      }
    }
    settling = false
  }

  function laneOf (webhook: number): WebhookDispatcher {
    let lane = lanes.get(webhook)
    if (lane === undefined) {
      lane = createWebhookDispatcher(webhook, context, () => { lanes.delete(webhook) })
      lanes.set(webhook, lane)
    }
    return lane
  }

  async function finish (): Promise<void> {
    await looking
    for (const lane of lanes.values()) lane.release()
    while (work.size > 0) await Promise.allSettled(work)
  }

  lookBy(0)

  return {
    wake (changed) {
      for (const id of changed) lanes.get(id)?.release()
      lookBy(0)
    },
    async close () {
      stop.abort()
      clearTimeout(timer)
      await Promise.race([finish(), sleep(STOP_MS, undefined, { ref: false })])
      caller.close()
    }
  }
}
