import ipaddr from 'ipaddr.js'

/** Whether anybody's address may be called: public, and no way around to a private one. */
export function isPublicAddress (text: string): boolean {
  if (!ipaddr.isValid(text)) return false
  // An IPv4 address in IPv6's clothing is judged as what it is.
  const address = ipaddr.process(text)
  if (address.range() !== 'unicast') return false
  // RFC 4291 section 2.4: what lies outside has been assigned to nobody.
  return address.kind() === 'ipv4' || address.match(GLOBAL_UNICAST)
}

const GLOBAL_UNICAST = ipaddr.parseCIDR('2000::/3')

/** The address that a URL names without a name; `undefined` when it has to be looked up. */
export function literalAddress (url: string): string | undefined {
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '')
  return ipaddr.isValid(host) ? host : undefined
}

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** Pauses after the first attempt, the second …; with the longest jitter they add up to a little less than a day. */
const RETRY_SCHEDULE = [5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 4 * HOUR, 5 * HOUR, 7 * HOUR]

/** A pause is longer than planned by up to this share, so that what failed together is not tried together. */
const JITTER = 0.2

export interface Failure {
  /** Attempts made, this one included. */
  attempts: number
  now: number
  /** When the day of this delivery ends. */
  giveUpAt: number
  /** How long the receiver asks to be left alone, in ms. */
  retryAfter: number
  /** From 0 to 1. */
  random: number
}

/** When a delivery that failed is tried again, all in ms; `undefined` when it is given up. */
export function nextAttemptAt ({ attempts, now, giveUpAt, retryAfter, random }: Failure): number | undefined {
  const pause = RETRY_SCHEDULE[attempts - 1]
  if (pause === undefined || now >= giveUpAt) return undefined
  const at = now + Math.max(pause * (1 + JITTER * random), retryAfter)
  // Who asks for more than the day is tried once more at its end.
  return Math.round(Math.min(at, giveUpAt))
}

/** `Retry-After` (RFC 9110 section 10.2.3), seconds or a date, in ms from now; 0 when there is none. */
export function retryAfterOf (field: string | undefined, now: number): number {
  if (field === undefined) return 0
  if (/^\d{1,9}$/.test(field)) return Number(field) * SECOND
  const date = Date.parse(field)
  return Number.isNaN(date) ? 0 : Math.max(0, date - now)
}

/** What an answer means: taken, taken never again, or to be tried again. A redirection is not followed. */
export function classifyResponse (status: number | undefined): 'accepted' | 'gone' | 'refused' {
  if (status === undefined) return 'refused'
  if (status >= 200 && status < 300) return 'accepted'
  return status === 410 ? 'gone' : 'refused'
}
