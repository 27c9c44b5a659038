import cluster, { type Worker } from 'node:cluster'
import type { FastifyBaseLogger } from 'fastify'
import { createCalls, type Calls } from './calls.ts'
import { countFailures, pauseAfter } from './restart-pause.ts'

/** What a worker does before it serves: migrate and open the demo store, migrate, or nothing. */
export type Task = 'open' | 'migrate' | 'join'

/** The exit code of a process, or the signal that ended it. */
type End = number | string

interface Member {
  /** From 1. A process that replaces another one has its place. */
  place: number
  worker: Worker
  calls: Calls
  /** Whether it is told of changes. */
  hasJoined: boolean
  /** When it began to serve, by `performance.now()`. */
  servesSince: number | undefined
  /** Whether another process takes its place when it ends. */
  isNeeded: boolean
  serves: Promise<undefined>
  ended: Promise<End>
}

interface Options {
  count: number
  graceMs: number
  log: FastifyBaseLogger
  /** Receives the metrics of a process that ends. */
  onMetrics: (worker: number, metrics: unknown) => void
  onEnd: (worker: number) => void
}

/** Time beyond that of a process itself after which it is killed. */
const KILL_MARGIN_MS = 2_000

/** Keeps worker processes running. */
export class WorkerGroup {
  readonly #options: Options
  readonly #members = new Set<Member>()
  /** Starts that wait, by place. */
  readonly #pauses = new Map<number, NodeJS.Timeout>()
  readonly #failures = new Map<number, number>()
  #isOpen = false
  #isStopping = false
  #isReloading = false
  #reloadsAgain = false

  constructor (options: Options) {
    this.#options = options
    // The workers accept connections themselves. Passed on by this process, one after the other, connections would wait
    // behind those of clients that open many, and clients of a killed worker would wait for ever.
    cluster.schedulingPolicy = cluster.SCHED_NONE
  }

  /** Starts the first worker, and then the others. @returns how the first one ended, if it did not come to serve */
  async open (): Promise<End | undefined> {
    const first = this.#start(1, 'open')
    const end = await Promise.race([first.serves, first.ended])
    if (end !== undefined || this.#isStopping) return end
    first.isNeeded = true
    this.#isOpen = true
    for (let place = 2; place <= this.#options.count; place++) this.#start(place, 'join').isNeeded = true
    return undefined
  }

  /** Replaces all workers, one after the other: the port is never without one. A call meanwhile does so once more. */
  async reload (): Promise<void> {
    this.#reloadsAgain = this.#isReloading
    // Processes that are starting are new.
    if (this.#isReloading || !this.#isOpen) return
    this.#isReloading = true
    do {
      this.#reloadsAgain = false
      this.#options.log.info('reloading')
      if (await this.#replaceAll()) this.#options.log.info('reloaded')
    } while (this.#reloadsAgain && !this.#isStopping)
    this.#isReloading = false
  }

  async #replaceAll (): Promise<boolean> {
    for (let place = 1; place <= this.#options.count; place++) {
      if (!await this.#replace(place)) return false
    }
    return true
  }

  /** Stops all workers. @returns whether each ended as it should */
  async stop (): Promise<boolean> {
    this.#isStopping = true
    for (const timer of this.#pauses.values()) clearTimeout(timer)
    const ends = await Promise.all([...this.#members].map(async (member) => {
      member.isNeeded = false
      member.worker.process.kill('SIGTERM')
      return await this.#endOf(member, this.#options.graceMs)
    }))
    return ends.every((end) => end === 0 || end === 'SIGTERM')
  }

  kill (): void {
    for (const { worker } of this.#members) worker.process.kill('SIGKILL')
  }

  /** Calls all workers. @returns the answers by worker */
  async ask (topic: string): Promise<Array<[worker: number, answer: unknown]>> {
    return await Promise.all([...this.#members].filter(({ hasJoined }) => hasJoined)
      .map(async ({ worker: { id }, calls }) => [id, await calls.call(topic)] as [number, unknown]))
  }

  #start (place: number, task: Task): Member {
    const { log, onMetrics } = this.#options
    const worker = cluster.fork({ PETSTORE_WORKER: task })
    const calls = createCalls(worker)
    const member: Member = {
      place,
      worker,
      calls,
      hasJoined: false,
      servesSince: undefined,
      isNeeded: false,
      serves: new Promise((resolve) => {
        calls.onCall('ready', async () => {
          member.servesSince = performance.now()
          log.info({ worker: place, process: worker.process.pid }, `worker ${place} serves`)
          resolve(undefined)
        })
      }),
      ended: new Promise((resolve) => {
        worker.once('exit', (code: number | null, signal: string) => { resolve(code ?? signal) })
        worker.on('error', (error: NodeJS.ErrnoException) => {
          // The system has no process for it.
          if (worker.process.pid === undefined) resolve(error.code ?? error.message)
        })
      })
    }
    this.#members.add(member)
    void member.ended.then((how) => { this.#onEnd(member, how) })
    calls.onCall('tell', async (change) => {
      const { topic, value } = change as { topic: string, value: unknown }
      const others = [...this.#members].filter((other) => other !== member && other.hasJoined)
      await Promise.all(others.map(async (other) => await other.calls.call(topic, value)))
    })
    calls.onCall('metrics', async (metrics) => { onMetrics(worker.id, metrics) })
    calls.onCall('joined', async () => { member.hasJoined = true })
    return member
  }

  #onEnd (member: Member, how: End): void {
    const { place, worker, servesSince, isNeeded } = member
    this.#members.delete(member)
    this.#options.onEnd(worker.id)
    if (!isNeeded) return
    const servedMs = servesSince === undefined ? 0 : performance.now() - servesSince
    this.#failures.set(place, countFailures(this.#failures.get(place) ?? 0, servedMs))
    this.#restart(place, `worker ${place} ended with ${how}`, { worker: place, process: worker.process.pid, end: how })
  }

  /** Starts a process for a place after a pause. */
  #restart (place: number, why: string, facts: object): void {
    if (this.#isStopping) return
    const pause = pauseAfter(this.#failures.get(place) ?? 1)
    this.#options.log.error(facts, `${why}; another one starts in ${pause} ms`)
    this.#pauses.set(place, setTimeout(() => {
      this.#pauses.delete(place)
      this.#start(place, 'join').isNeeded = true
    }, pause))
  }

  /** Replaces the process of a place. @returns false if its successor did not come to serve */
  async #replace (place: number): Promise<boolean> {
    if (this.#isStopping) return false
    clearTimeout(this.#pauses.get(place))
    this.#pauses.delete(place)
    const old = [...this.#members].find((member) => member.place === place)
    if (old !== undefined) old.isNeeded = false
    const next = this.#start(place, place === 1 ? 'migrate' : 'join')
    const end = await Promise.race([next.serves, next.ended])
    if (this.#isStopping) return false
    if (end !== undefined) {
      const facts = { worker: place, process: next.worker.process.pid, end }
      const why = `the reload failed: the new worker ${place} ended with ${end}`
      if (old === undefined || !this.#members.has(old)) {
        this.#restart(place, why, facts)
      } else {
        old.isNeeded = true
        this.#options.log.error(facts, `${why}; the workers before it go on`)
      }
      return false
    }
    next.isNeeded = true
    if (old === undefined) return true
    if (old.servesSince === undefined) old.worker.process.kill('SIGTERM')
    else await old.calls.call('retire')
    // Its connections have this time to end, and then its requests.
    await this.#endOf(old, 2 * this.#options.graceMs)
    return true
  }

  /** Waits for the end of a process, and kills it after a time. */
  async #endOf ({ place, worker, ended }: Member, ms: number): Promise<End> {
    const late = setTimeout(() => {
      this.#options.log.error({ worker: place, process: worker.process.pid }, `worker ${place} does not stop; killing it`)
      worker.process.kill('SIGKILL')
    }, ms + KILL_MARGIN_MS)
    return await ended.finally(() => { clearTimeout(late) })
  }
}
