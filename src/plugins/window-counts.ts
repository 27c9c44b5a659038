import { LRUCache } from 'lru-cache'

/** Maximum number of clients counted at once. One more replaces the client that was idle for the longest time. */
const MAX_CLIENTS = 50_000

interface Window {
  count: number
  /** A time of `performance.now()`. */
  startedAt: number
}

/** The requests of a window, and the time in ms until it ends. */
interface Use { current: number, ttl: number }

type Callback = (error: null, use: Use) => void

/**
 * The store of @fastify/rate-limit: counts the requests of each client in windows of fixed length. The plugin's own
 * store measures by the system's clock, which may be set back: a window would then last hours.
 */
export class WindowCounts {
  #allocated: LRUCache<string, Window> | undefined

  /** The windows of the clients. The cache allocates its memory at once, which a limit that is off does not need. */
  get #windows (): LRUCache<string, Window> {
    this.#allocated ??= new LRUCache({ max: MAX_CLIENTS })
    return this.#allocated
  }

  incr (client: string, callback: Callback, timeWindow: number): void {
    const now = performance.now()
    const window = this.#openWindow(client, timeWindow, now) ?? { count: 0, startedAt: now }
    window.count++
    this.#windows.set(client, window)
    callback(null, useOf(window, timeWindow, now))
  }

  /** Returns what `incr` has counted. */
  read (client: string, callback: Callback, timeWindow: number): void {
    const now = performance.now()
    const window = this.#openWindow(client, timeWindow, now)
    callback(null, window === undefined ? { current: 0, ttl: 0 } : useOf(window, timeWindow, now))
  }

  /** Returns the store of one limit. */
  child (): WindowCounts {
    return new WindowCounts()
  }

  #openWindow (client: string, timeWindow: number, now: number): Window | undefined {
    const window = this.#windows.get(client)
    return window === undefined || now - window.startedAt >= timeWindow ? undefined : window
  }
}

function useOf ({ count, startedAt }: Window, timeWindow: number, now: number): Use {
  return { current: count, ttl: timeWindow - (now - startedAt) }
}
