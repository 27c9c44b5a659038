import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import type { Commit } from '../database/commit.ts'
import type { Read } from '../database/read.ts'
import type { Meter } from '../meter.ts'
import { settleMessages } from '../messages/store.ts'
import { CALL_MS, type Answer, type Caller } from './call.ts'
import { findDue, settleDeliveries, takeDeliveries, type Settlement, type Taken } from './deliveries.ts'
import { judge, nextTry, retryAfterOf } from './rules.ts'

export interface Worker {
  /** There may be something to deliver. */
  wake: () => void
  /** Drops the calls under way and gives back what they were for, to be sent again later. */
  close: () => Promise<void>
}

export interface WorkerOptions {
  read: Read
  commit: Commit
  caller: Caller
  log: FastifyBaseLogger
  meter?: Meter | undefined
}

/** Calls to one webhook at a time. */
const AT_ONCE = 8

/** Taken in reserve for a webhook that answers quickly, so that its calls need not wait for the database. */
const RESERVE = 120

/** A webhook that answers within this, in ms, is quick: its reserve is sent before long. */
const QUICK_MS = 100

/** What becomes of calls is written down together, after this long, in ms: many for the price of one. */
const GATHER_MS = 20

/** A call that met no answer for this long, in ms, was a silent one. */
const SILENT_MS = 1_000

/** Calls of this process at a time, all webhooks together: bounds its sockets. */
const CALLS = 500

/** Least pause between two looks at the queue, in ms, and for each webhook that it showed: looks take a small share of the time. */
const LOOK_MS = 25
const LOOK_WEBHOOK_MS = 0.05

/** The queue is looked at this often without being woken, in ms: a notification may get lost. */
const POLL_MS = 5_000

/** A webhook of which nothing could be taken, because another worker is at it, is left alone this long, in ms. */
const BUSY_MS = 1_000

/** Writing down what became of a call is tried this often; after that its lease runs out and it is made again. */
const SETTLE_ATTEMPTS = 3

/** What is left of a lease when the last call under it must have ended, in ms. */
const LEASE_RESERVE_MS = 2_000

/** One webhook's deliveries in this process. */
interface Lane {
  webhook: number
  /** Taken, and not yet sent; in the order in which they are to be. */
  queue: Taken[]
  underWay: number
  /** Taken, and not yet written down what became of them. */
  held: number
  taking: boolean
  /** There may be more to take. */
  more: boolean
  /** How long the last call took, in ms; at first unknown. */
  lastMs: number | undefined
  /** The last call met no answer: one at a time, so that a receiver that hangs holds one connection. */
  silent: boolean
  notBefore: number
}

/**
 * Delivers: takes what is due, calls the webhooks, writes down what became of it; and settles the messages
 * that no webhook is asked about. Whatever it knows it could forget: the deliveries' rows are the queue.
 */
export function createWorker ({ read, commit, caller, log, meter }: WorkerOptions): Worker {
  const worker = randomBytes(8).toString('hex')
  const lanes = new Map<number, Lane>()
  const stopped = new AbortController()
  /** What a stop waits for. */
  const work = new Set<Promise<void>>()
  let calls = 0
  let gathered: Settlement[] = []
  let looking: Promise<void> | undefined
  /** No look comes before; the next one is planned; something known is due, each in ms. */
  let earliest = 0
  let planned = Infinity
  let due = Infinity
  let timer: NodeJS.Timeout | undefined

  function wake (): void {
    lookBy(0)
  }

  function lookBy (time: number): void {
    due = Math.min(due, time)
    if (looking === undefined) plan()
  }

  function plan (): void {
    const now = Date.now()
    const time = Math.max(earliest, Math.min(due, now + POLL_MS))
    if (time >= planned || stopped.signal.aborted) return
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
    for (const { id, at } of webhooks) {
      if (at > now) {
        lookBy(at)
        continue
      }
      const lane = laneOf(id)
      lane.more = true
      if (lane.notBefore > now) lookBy(lane.notBefore)
      else start(lane)
    }
    if (messages > 0) {
      while ((await commit(settleMessages, { upTo: messages }, { account: null })).record === 1_000) continue
    }
  }

  function laneOf (webhook: number): Lane {
    let lane = lanes.get(webhook)
    if (lane === undefined) {
      lane = { webhook, queue: [], underWay: 0, held: 0, taking: false, more: false, lastMs: undefined, silent: false, notBefore: 0 }
      lanes.set(webhook, lane)
    }
    return lane
  }

  /** Takes as much as can be sent now; of a quick webhook, a little in reserve. */
  function fill (lane: Lane): void {
    const room = lane.silent ? 1 : AT_ONCE + (lane.lastMs !== undefined && lane.lastMs <= QUICK_MS ? RESERVE : 0)
    const want = Math.min(room - lane.held, CALLS - calls)
    const enough = room > AT_ONCE ? RESERVE / 2 : 1
    if (stopped.signal.aborted || lane.taking || !lane.more || want < enough || lane.notBefore > Date.now()) return
    lane.taking = true
    lane.more = false
    track(commit(takeDeliveries, { webhookId: lane.webhook, worker, want }, { account: null }).then(({ record: { taken, more, busy } }) => {
      lane.taking = false
      lane.more ||= more
      lane.held += taken.length
      lane.queue.push(...taken)
      if (busy) lane.notBefore = Date.now() + BUSY_MS
      if (stopped.signal.aborted) return release(lane)
      start(lane)
    }, (error: unknown) => {
      lane.taking = false
      lane.notBefore = Date.now() + BUSY_MS
      log.warn({ err: error }, 'could not take deliveries')
    }))
  }

  function start (lane: Lane): void {
    while (lane.queue.length > 0 && calls < CALLS && lane.underWay < (lane.silent ? 1 : AT_ONCE) && !stopped.signal.aborted) {
      const delivery = lane.queue.shift()!
      // One whose lease may end before its call does is given back.
      if (delivery.leasedUntil - Date.now() < CALL_MS + LEASE_RESERVE_MS) {
        settle(lane, released(delivery))
        continue
      }
      lane.underWay++
      calls++
      track(deliver(lane, delivery).catch((error: unknown) => { log.error({ err: error }, 'a delivery failed') }))
    }
    fill(lane)
    if (lane.held === 0 && !lane.taking && !lane.more && lane.notBefore <= Date.now() && !lane.silent) lanes.delete(lane.webhook)
  }

  async function deliver (lane: Lane, delivery: Taken): Promise<void> {
    const began = Date.now()
    let answer: Answer | 'dropped'
    try {
      answer = delivery.body === undefined
        ? { error: 'The event is no longer held' }
        : await caller.call({ url: delivery.url, id: idOf(delivery), body: delivery.body, secrets: delivery.secrets }, stopped.signal)
    } catch {
      answer = 'dropped'
    }
    lane.underWay--
    calls--
    if (answer !== 'dropped') {
      lane.lastMs = Date.now() - began
      lane.silent = answer.status === undefined && lane.lastMs > SILENT_MS
    }
    settle(lane, answer === 'dropped' ? released(delivery) : settlement(delivery, answer, began))
    // What is in reserve would wait too long, or is not wanted any more.
    if (lane.silent || (answer !== 'dropped' && judge(answer.status) === 'gone')) release(lane)
    if (!stopped.signal.aborted) start(lane)
  }

  function released ({ id, webhook: webhookId, message, url }: Taken): Settlement {
    return { id, webhookId, worker, message, url, result: 'released' }
  }

  function settlement (delivery: Taken, { status, error, retryAfter }: Answer, began: number): Settlement {
    const now = Date.now()
    const { attempts, giveUpAt, event } = delivery
    const judged = judge(status)
    const once = event === 0 || delivery.body === undefined
    const at = judged !== 'refused' || once
      ? undefined
      : nextTry({ attempts, now, giveUpAt, retryAfter: retryAfterOf(retryAfter, now), random: Math.random() })
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

  function settle (lane: Lane, settlement: Settlement): void {
    meter?.delivered(settlement.result, settlement.attempt?.durationMs)
    track(written(settlement).finally(() => {
      lane.held--
      if (settlement.attempt?.nextTryAt !== undefined) lookBy(Date.parse(settlement.attempt.nextTryAt))
      start(lane)
    }))
  }

  let writing: Promise<void> | undefined

  async function written (settlement: Settlement): Promise<void> {
    gathered.push(settlement)
    writing ??= sleep(stopped.signal.aborted ? 0 : GATHER_MS).then(async () => {
      const settlements = gathered
      gathered = []
      writing = undefined
      await Promise.all(settlements.map(write))
    })
    await writing
  }

  function track (promise: Promise<void>): void {
    work.add(promise)
    promise.finally(() => { work.delete(promise) }).catch(() => {})
  }

  async function write (settlement: Settlement): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        await commit(settleDeliveries, settlement, { account: null })
        return
      } catch (error) {
        log.warn({ err: error }, 'could not write down a delivery')
        if (attempt === SETTLE_ATTEMPTS || stopped.signal.aborted) return
      }
      await sleep(1_000, undefined, { ref: false })
    }
  }

  function release (lane: Lane): void {
    for (const delivery of lane.queue.splice(0)) settle(lane, released(delivery))
  }

  wake()

  return {
    wake,
    async close () {
      stopped.abort()
      clearTimeout(timer)
      await looking
      for (const lane of lanes.values()) release(lane)
      while (work.size > 0) await Promise.allSettled(work)
      caller.close()
    }
  }
}

/** Unique beyond the account, and the same whenever the event is sent. */
function idOf ({ account, event, id }: Taken): string {
  return event === 0 ? `evt_${account}_test_${id}` : `evt_${account}_${event}`
}
