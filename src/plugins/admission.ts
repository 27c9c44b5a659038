import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { HEALTH_CHECKS } from './health-checks.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Decides when a request starts. */
    admission: Admission
  }
  interface FastifyContextConfig {
    /** The operation requires an API key, which decides whose request it is. */
    authenticated?: boolean
  }
}

/** All requests without an account count as those of one account. */
export const STRANGERS = 0

/** Health checks do not wait behind other strangers. */
const HEALTH_CHECKERS = -1

/** An account may start this many requests more than the account with the fewest. */
const LEAD = 32

/** Requests that wait start together, as many as this: reads and writes that start together share statements. */
const BURST = 8

/** An account whose requests wait may start at least this many in each interval. */
const LEAST_STARTS = 32
const INTERVAL_MS = 10

/** While the event loop is idle for a larger part of its time than `SPARE`, more requests start in each interval. */
const SPARE = 0.2
/** While it is idle for a smaller part, fewer start. */
const BUSY = 0.1

/** An account takes part for this long after its last request started. */
const ACTIVE_MS = 20

interface Account {
  id: number
  /** Number of requests that it started. It starts with that of the account with the fewest. */
  started: number
  /** The same number at the beginning of the interval. */
  startedBefore: number
  /** Number of requests that it may start in this interval beyond its lead. */
  extra: number
  lastStartAt: number
  /** Start the requests that wait, oldest first. */
  waiting: Array<() => void>
}

/**
 * Shares the event loop between accounts. In the order of arrival, an account with many connections would get most of
 * its time. Here an account with a lead of `LEAD` requests waits until the others start some, or until the event loop
 * has time to spare. While one account sends all requests, none waits.
 */
export class Admission {
  /** The accounts that share the event loop. */
  readonly #accounts = new Map<number, Account>()
  #lastAccount = NaN
  /** The lowest `started` of all accounts. */
  #fewest = 0
  /** The time in this turn of the event loop, by `performance.now()`. */
  #now = 0
  #isTurnScheduled = false
  #extra = LEAST_STARTS
  #interval: NodeJS.Timeout | undefined
  #utilization = performance.eventLoopUtilization()

  /** Lets a request of an account start. @returns a promise if the request has to wait */
  admit (id: number): Promise<void> | undefined {
    if (id === this.#lastAccount && this.#accounts.size < 2) return undefined
    this.#lastAccount = id
    if (!this.#isTurnScheduled) {
      this.#isTurnScheduled = true
      this.#now = performance.now()
      setImmediate(() => { this.#startTurn() })
    }
    let account = this.#accounts.get(id)
    if (account === undefined) {
      const started = this.#fewest
      account = { id, started, startedBefore: started, extra: 0, lastStartAt: this.#now, waiting: [] }
      this.#accounts.set(id, account)
    }
    const { waiting } = account
    if (waiting.length === 0 && this.#mayStart(account)) return undefined
    this.#interval ??= this.#startIntervals()
    return new Promise((resolve) => { waiting.push(resolve) })
  }

  /** Counts a request. @returns whether it may start */
  #mayStart (account: Account): boolean {
    if (account.started < this.#fewest + LEAD) account.started++
    else if (account.extra > 0) account.extra--
    else return false
    account.lastStartAt = this.#now
    return true
  }

  #startTurn (): void {
    this.#isTurnScheduled = false
    this.#now = performance.now()
    let fewest = Infinity
    for (const account of this.#accounts.values()) {
      const isActive = account.waiting.length > 0 || this.#now - account.lastStartAt <= ACTIVE_MS
      if (isActive) fewest = Math.min(fewest, account.started)
      else this.#accounts.delete(account.id)
    }
    this.#fewest = this.#accounts.size === 0 ? 0 : fewest
    for (const account of this.#accounts.values()) if (account.waiting.length > 0) this.#startWaiting(account)
  }

  #startWaiting (account: Account): void {
    const { waiting } = account
    const isAlone = this.#accounts.size === 1
    const allowed = isAlone ? Infinity : this.#fewest + LEAD - account.started + account.extra
    if (allowed < Math.min(waiting.length, BURST)) return
    for (const start of waiting.splice(0, allowed)) {
      if (!isAlone) this.#mayStart(account)
      start()
    }
    account.lastStartAt = this.#now
  }

  #startIntervals (): NodeJS.Timeout {
    this.#utilization = performance.eventLoopUtilization()
    return setInterval(() => { this.#startInterval() }, INTERVAL_MS)
  }

  #startInterval (): void {
    const before = this.#utilization
    this.#utilization = performance.eventLoopUtilization()
    const idle = 1 - performance.eventLoopUtilization(this.#utilization, before).utilization
    const accounts = [...this.#accounts.values()]
    if (idle < BUSY) this.#extra = Math.max(LEAST_STARTS, this.#extra / 2)
    else if (idle > SPARE && accounts.some(({ waiting }) => waiting.length > 0)) this.#extra *= 1.25
    for (const account of accounts) {
      account.extra = Math.max(0, Math.round(this.#extra) - (account.started - account.startedBefore))
      account.startedBefore = account.started
    }
    this.#startTurn()
    if (this.#accounts.size > 1) return
    clearInterval(this.#interval)
    this.#interval = undefined
  }
}

/** Lets requests without an API key start. `authentication` decides about the others. */
export const admission = fp(async function admission (app: FastifyInstance) {
  const admission = new Admission()
  app.decorate('admission', admission)
  app.addHook('onRequest', (request, _reply, done) => {
    if (hasApiKey(request)) return done()
    const admitted = admission.admit(isHealthCheck(request) ? HEALTH_CHECKERS : STRANGERS)
    if (admitted === undefined) done()
    else void admitted.then(() => { done() })
  })
}, { name: 'admission' })

function hasApiKey ({ routeOptions, headers: { authorization } }: FastifyRequest): boolean {
  return routeOptions.config.authenticated === true && authorization !== undefined && /^bearer /i.test(authorization)
}

function isHealthCheck ({ routeOptions: { url } }: FastifyRequest): boolean {
  return url !== undefined && HEALTH_CHECKS.includes(url)
}
