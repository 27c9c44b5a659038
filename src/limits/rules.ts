/** Whose requests are counted together: those of the account, or those of each of its API keys. */
export interface Limit {
  requests: number
  windowSeconds: number
  retryAfter: 'seconds' | 'date' | 'none'
}

/** The requests that are counted together, of a window of fixed length. Times in ms by the account's clock. */
export interface Window {
  /** The id of the API key, or 0 for all of the account. */
  client: number
  /** The time of the first request. */
  startedAt: number
  used: number
  /** Since when clients are told to wait, and until when. */
  toldAt?: number
  retryAt?: number
}

/** A request that is counted. Times in ms by the account's clock. */
export interface Arrival {
  client: number
  /** When the request came. */
  arrivedAt: number
  /** When it is counted: all requests of a transaction at the same time. */
  now: number
  /** How far the clock is ahead of real time, in which a date is told. */
  offset: number
}

/** What a request is told. */
export interface Use {
  isRefused: boolean
  /** Whether it came before the time that refused ones were told to wait for. */
  isEarly: boolean
  remaining: number
  /** Time until all requests are available again. */
  seconds: number
  /** That time, in ms of real time and in whole seconds. */
  date: number
}

/** As many as an account can have API keys. Of the windows of revoked keys, the oldest are forgotten. */
const MAX_WINDOWS = 100

const toSeconds = (ms: number): number => Math.ceil(ms / 1000)

/**
 * Counts a request. A request that came before the first one was refused is not early: its client could not know
 * better.
 *
 * @param windows those of the account; changed
 */
export function countRequest (limit: Limit, windows: Window[], { client, arrivedAt, now, offset }: Arrival): Use {
  const length = limit.windowSeconds * 1000
  const found = windows.find((window) => window.client === client)
  const window = found ?? { client, startedAt: now, used: 0 }
  if (found === undefined) windows.push(window)
  const { toldAt, retryAt } = window
  const isEarly = toldAt !== undefined && retryAt !== undefined && arrivedAt > toldAt && arrivedAt < retryAt
  // A window that begins much later was begun before the machine's clock was set back, and would last as much longer.
  if (Math.abs(now - window.startedAt) >= length) Object.assign(window, { startedAt: now, used: 0 })
  // The clocks of two machines differ by a little.
  const left = Math.min(length, window.startedAt + length - now)
  const seconds = toSeconds(left)
  const date = toSeconds(now - offset + left) * 1000
  const isRefused = window.used >= limit.requests
  if (!isRefused) window.used++
  else if (limit.retryAfter === 'seconds') tell(window, now, now + seconds * 1000)
  else if (limit.retryAfter === 'date') tell(window, now, date + offset)
  return { isRefused, isEarly, remaining: limit.requests - window.used, seconds, date }
}

function tell (window: Window, now: number, until: number): void {
  if (now >= (window.retryAt ?? 0)) window.toldAt = now
  window.retryAt = until
}

/** Returns the windows that later requests depend on. */
export function currentWindows ({ windowSeconds }: Limit, windows: Window[], now: number): Window[] {
  const isCurrent = ({ startedAt, retryAt = 0 }: Window): boolean =>
    now < startedAt + windowSeconds * 1000 || now < retryAt
  return windows.filter(isCurrent).sort((a, b) => a.startedAt - b.startedAt).slice(-MAX_WINDOWS)
}
