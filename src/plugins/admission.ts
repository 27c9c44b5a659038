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

/**
 * The time in ms that counts as one request. A request that takes longer in this process counts as several. It is half
 * of what an ordinary write takes: long requests also delay the others and leave garbage behind. With 0.06 in place of
 * 0.04, an account kept 0.38 of its writes beside a journal of large requests, and 0.51 now; with 0.1, 0.34 beside
 * bodies of thousands of members, and 0.49. The least starts of an account are an eighth of the time.
 */
const REQUEST_MS = 0.04

/** Number of bytes of JSON that counts as one request, until the time is known: 14,000 names in 110 KB take 11 ms. */
const REQUEST_BYTES = 1_024

/** So many bytes count as one request, beside the time of the parser: to read and collect 110 KB takes 0.6 ms. */
const READ_BYTES = 10_240

/** All requests without an account count as those of one account. */
export const STRANGERS = 0

/** Health checks do not wait behind other strangers. */
export const HEALTH_CHECKERS = -1

/** An account may start this many requests more than the account with the fewest. */
const LEAD = 32

/** Requests that took longer can give an account this lead. It has made up for it when others took a second. */
const MAX_LEAD = 1_000 / REQUEST_MS

/** Requests that wait start together, as many as this: reads and writes that start together share statements. */
const BURST = 8

/**
 * This many requests of all accounts start in a turn of the event loop. Others are not heard before its end: thousands
 * of requests of one account take half a second, and left another account 0.02 of its writes. With 64 in place of 256,
 * an account with 512 connections lost a quarter of its requests/s, and others gained nothing.
 */
const MAX_STARTS = 256

/**
 * While connections arrive, requests start in one of so many turns: Node accepts one connection in each turn, and a
 * turn with a transaction of SQLite takes milliseconds. If requests start in each turn, the connection of another
 * client waits for 7 s behind 4,000.
 */
const TURNS_PER_START = 64

/** An account whose requests wait may start at least this many in each interval, as far as turns allow. */
const LEAST_STARTS = 32
const INTERVAL_MS = 10

/** While the event loop is idle for a larger part of its time than `SPARE`, more requests start in each interval. */
const SPARE = 0.2
/** While it is idle for a smaller part, fewer start. */
const BUSY = 0.1

/** An account takes part for this long after its last request started, and until it has made up for its cost. */
const ACTIVE_MS = 20

/** And for this many turns: a large body can make one longer than that, in which its clients are not heard. */
const ACTIVE_TURNS = 8

interface Account {
  id: number
  /** Number of requests that it started. It starts with that of the account with the fewest. */
  started: number
  /** The same number at the beginning of the interval. */
  startedBefore: number
  /** Number of requests that it may start in this interval beyond its lead. Below 0 if they took longer. */
  extra: number
  lastStartAt: number
  /** The turn of the event loop of its last start. */
  lastStartTurn: number
  /** The requests that wait, oldest first. */
  waiting: Array<{ cost: number, start: () => void }>
}

/**
 * Shares the event loop between accounts. In the order of arrival, an account with many connections would get most of
 * its time. Here an account with a lead of `LEAD` requests waits until the others start some, or until the event loop
 * has time to spare. `MAX_STARTS` requests start in each turn, and accounts take turns.
 *
 * What counts is time: a request is admitted as one, or as several if its body is large, and charged when its time is
 * known.
 */
export class Admission {
  /** The accounts that share the event loop. */
  readonly #accounts = new Map<number, Account>()
  #lastAccount = NaN
  /** The lowest `started` of all accounts. */
  #fewest = 0
  /** The time in this turn of the event loop, by `performance.now()`. */
  #now = 0
  #turn = 0
  /** Number of requests that may still start in this turn. */
  #startsLeft = MAX_STARTS
  #hasNewConnection = false
  /** Number of turns with a new connection since the last one in which requests could start. */
  #turnsWithoutStart = 0
  #isTurnScheduled = false
  #extra = LEAST_STARTS
  #interval: NodeJS.Timeout | undefined
  #utilization = performance.eventLoopUtilization()

  /** Lets a request of an account start. @returns a promise if the request has to wait */
  admit (id: number, cost = 1): Promise<void> | undefined {
    this.#scheduleTurn()
    const isAlone = id === this.#lastAccount && this.#accounts.size === 0
    this.#lastAccount = id
    if (isAlone && this.#startsLeft > 0) {
      this.#startsLeft--
      return undefined
    }
    const account = this.#accountOf(id)
    const { waiting } = account
    if (waiting.length === 0 && this.#startsLeft > 0 && this.#hasShare(account)) {
      this.#start(account, cost)
      return undefined
    }
    this.#interval ??= this.#startIntervals()
    return new Promise((resolve) => { waiting.push({ cost, start: resolve }) })
  }

  /** Must be called for each new connection. */
  onConnection (): void {
    this.#hasNewConnection = true
  }

  /** Lets a body be parsed. @returns as `admit` */
  admitBody (id: number, bytes: number): Promise<void> | undefined {
    return bytes > REQUEST_BYTES ? this.admit(id, bytes / REQUEST_BYTES) : undefined
  }

  /** Charges each of some accounts its part of the time since `began`. */
  chargeAll (ids: readonly number[], began: number): void {
    const part = (performance.now() - began) / ids.length
    for (const id of ids) this.charge(id, performance.now() - part)
  }

  /** Charges an account for the time since `began` that a request took, beyond the cost of its admission. */
  charge (id: number, began: number, bytes = 0): void {
    const paid = bytes > REQUEST_BYTES ? bytes / REQUEST_BYTES : 1
    const excess = (performance.now() - began) / REQUEST_MS + bytes / READ_BYTES - paid
    if (this.#accounts.size === 0 || (excess <= 0 && paid === 1)) return
    this.#add(this.#accountOf(id), excess)
    this.#interval ??= this.#startIntervals()
  }

  #scheduleTurn (): void {
    if (this.#isTurnScheduled) return
    this.#isTurnScheduled = true
    this.#now = performance.now()
    setImmediate(() => {
      this.#isTurnScheduled = false
      this.#startTurn()
    })
  }

  #accountOf (id: number): Account {
    let account = this.#accounts.get(id)
    if (account === undefined) {
      const started = this.#fewest
      account = {
        id, started, startedBefore: started, extra: 0, lastStartAt: this.#now, lastStartTurn: this.#turn, waiting: []
      }
      this.#accounts.set(id, account)
    }
    return account
  }

  #hasShare (account: Account): boolean {
    return account.started < this.#fewest + LEAD || account.extra > 0
  }

  #start (account: Account, cost: number): void {
    this.#startsLeft--
    if (account.started < this.#fewest + LEAD) account.started++
    else account.extra--
    this.#add(account, cost - 1)
    this.#markActive(account)
  }

  #markActive (account: Account): void {
    account.lastStartAt = this.#now
    account.lastStartTurn = this.#turn
  }

  #isActive ({ waiting, lastStartAt, lastStartTurn }: Account): boolean {
    return waiting.length > 0 ||
      this.#now - lastStartAt <= ACTIVE_MS || this.#turn - lastStartTurn <= ACTIVE_TURNS
  }

  /** Adds what a request costs beyond an ordinary one, so that neither its lead nor an interval pays for it. */
  #add (account: Account, excess: number): void {
    account.started = Math.min(account.started + excess, this.#fewest + MAX_LEAD)
    account.extra = Math.max(account.extra - excess, -MAX_LEAD)
  }

  #startTurn (): void {
    this.#turnsWithoutStart = this.#hasNewConnection ? (this.#turnsWithoutStart + 1) % TURNS_PER_START : 0
    this.#startsLeft = this.#turnsWithoutStart === 0 ? MAX_STARTS : 0
    this.#hasNewConnection = false
    this.#turn++
    this.#now = performance.now()
    let fewest = Infinity
    for (const account of this.#accounts.values()) {
      const { id, started, waiting } = account
      if (!this.#isActive(account)) {
        if (this.#hasShare(account)) this.#accounts.delete(id)
      } else if (id !== HEALTH_CHECKERS || waiting.length > 0) {
        // Who checks the health sends one request at a time: nobody keeps room for the next.
        fewest = Math.min(fewest, started)
      }
    }
    // Without others, nobody waits for an account to make up for its cost.
    if (fewest === Infinity) this.#accounts.clear()
    this.#fewest = this.#accounts.size === 0 ? 0 : fewest
    for (const account of [...this.#accounts.values()]) {
      if (this.#startsLeft === 0) return this.#scheduleTurn()
      if (account.waiting.length === 0) continue
      this.#startWaiting(account)
      // Those that had no turn are first in the next one.
      this.#accounts.delete(account.id)
      this.#accounts.set(account.id, account)
    }
    if (this.#startsLeft === 0) this.#scheduleTurn()
  }

  #startWaiting (account: Account): void {
    const { waiting } = account
    if (this.#accounts.size === 1) {
      const starting = waiting.splice(0, this.#startsLeft)
      this.#startsLeft -= starting.length
      for (const { start } of starting) start()
    } else {
      const allowed = Math.max(0, this.#fewest + LEAD - account.started) + Math.max(0, account.extra)
      if (allowed < Math.min(waiting.length, BURST)) return
      while (waiting.length > 0 && this.#startsLeft > 0 && this.#hasShare(account)) {
        const { cost, start } = waiting.shift()!
        this.#start(account, cost)
        start()
      }
    }
    this.#markActive(account)
  }

  #startIntervals (): NodeJS.Timeout {
    this.#utilization = performance.eventLoopUtilization()
    return setInterval(() => { this.#startInterval() }, INTERVAL_MS).unref()
  }

  #startInterval (): void {
    const before = this.#utilization
    this.#utilization = performance.eventLoopUtilization()
    const idle = 1 - performance.eventLoopUtilization(this.#utilization, before).utilization
    const accounts = [...this.#accounts.values()]
    if (idle < BUSY) this.#extra = Math.max(LEAST_STARTS, this.#extra / 2)
    else if (idle > SPARE && accounts.some(({ waiting }) => waiting.length > 0)) this.#extra *= 1.25
    for (const account of accounts) {
      const unused = Math.max(0, Math.round(this.#extra) - (account.started - account.startedBefore))
      account.extra = unused + Math.min(0, account.extra)
      account.startedBefore = account.started
    }
    if (!this.#isTurnScheduled) this.#startTurn()
    if (this.#accounts.size > 1) return
    clearInterval(this.#interval)
    this.#interval = undefined
  }
}

/** Lets requests without an API key start. `authentication` decides about the others. */
export const admission = fp(async function admission (app: FastifyInstance) {
  const admission = new Admission()
  app.decorate('admission', admission)
  app.server.on('connection', () => { admission.onConnection() })
  app.addHook('onRequest', (request, _reply, done) => {
    if (hasApiKey(request)) return done()
    const admitted = admission.admit(isHealthCheck(request) ? HEALTH_CHECKERS : STRANGERS)
    if (admitted === undefined) done()
    else void admitted.then(() => { done() })
  })
  // `done` serializes, encodes and writes the response. Large ones take milliseconds.
  app.addHook('onSend', (request, _reply, payload, done) => {
    const began = performance.now()
    done(null, payload)
    const account = accountOf(request)
    if (account !== STRANGERS || !isHealthCheck(request)) admission.charge(account, began)
  })
}, { name: 'admission' })

/** Returns the account that a request counts for. */
export function accountOf ({ auth }: { auth: { account: number } | null }): number {
  return auth?.account ?? STRANGERS
}

function hasApiKey ({ routeOptions, headers: { authorization } }: FastifyRequest): boolean {
  return routeOptions.config.authenticated === true && authorization !== undefined && /^bearer /i.test(authorization)
}

function isHealthCheck ({ routeOptions: { url } }: FastifyRequest): boolean {
  return url !== undefined && HEALTH_CHECKS.includes(url)
}
