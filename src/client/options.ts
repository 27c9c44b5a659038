import type { CallOptions } from './methods.ts'

/** The longest time of a timer. A longer one would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

export interface Limits { timeoutMs: number, retries: number }

/**
 * Returns the options of a client or of a call. `undefined` counts as not given.
 *
 * @throws {TypeError | RangeError} that says what is wrong with an option
 */
export function readLimits ({ timeoutMs, retries, signal }: CallOptions, defaults: Limits): Limits {
  checkSignal(signal)
  if (timeoutMs !== undefined) checkNumber('timeoutMs', timeoutMs, 1, LONGEST_TIMER_MS)
  if (retries !== undefined) checkNumber('retries', retries, 0, Number.MAX_SAFE_INTEGER)
  return { timeoutMs: timeoutMs ?? defaults.timeoutMs, retries: retries ?? defaults.retries }
}

export function checkNumber (name: string, value: unknown, minimum: number, maximum: number): void {
  const rule = `${name} must be a whole number from ${minimum} to ${maximum}`
  if (typeof value !== 'number') throw new TypeError(`${rule}, and is a ${typeof value}`)
  if (!Number.isInteger(value) || value < minimum || value > maximum) throw new RangeError(`${rule}, and is ${value}`)
}

export function checkObject (name: string, value: unknown): void {
  if (typeof value !== 'object' || value === null) throw new TypeError(`${name} must be an object`)
}

/** Accepts an AbortSignal of any implementation. */
export function checkSignal (signal: unknown): void {
  if (signal === undefined) return
  const { aborted, addEventListener } = (signal ?? {}) as Partial<AbortSignal>
  if (typeof aborted !== 'boolean' || typeof addEventListener !== 'function') {
    throw new TypeError('signal must be an AbortSignal')
  }
}

/** Returns the address of a service, without a slash at its end. */
export function readUrl (url: unknown): string {
  const rule = 'The url of a client must be an absolute http or https address, such as http://127.0.0.1:3000'
  const text = typeof url === 'string' ? url : String((url as { href?: string } | undefined)?.href ?? '')
  if (!URL.canParse(text)) throw new TypeError(`${rule}, and is ${typeof url === 'string' ? url : typeof url}`)
  const { protocol, username, password, search, hash, origin, pathname } = new URL(text)
  if (protocol !== 'http:' && protocol !== 'https:') throw new TypeError(`${rule}, and is ${text}`)
  if (username !== '' || password !== '') throw new TypeError(`${rule}, without a user and a password`)
  if (search !== '' || hash !== '') throw new TypeError(`${rule}, without a query and a fragment, and is ${text}`)
  return origin + pathname.replace(/\/+$/, '')
}

export function checkKey (apiKey: unknown): void {
  if (typeof apiKey !== 'string' || !/^[\x21-\x7e]+$/.test(apiKey)) {
    throw new TypeError('apiKey must be an API key of the service: visible ASCII characters')
  }
}

/**
 * Returns an id as one segment of a path.
 *
 * @param subject the name of the operation and its parameter
 */
export function segmentOf (id: unknown, subject: string): string {
  if (id === undefined) throw new TypeError(subject)
  if (!['string', 'number', 'bigint'].includes(typeof id)) throw new TypeError(`${subject}, not a ${typeof id}`)
  const text = `${id as string}`
  // Neither "." nor ".." is a segment, however it is encoded (WHATWG URL). A lone surrogate cannot be encoded.
  if (/^\.{0,2}$|\p{Cs}/u.test(text)) throw new TypeError(`${subject}, not ${JSON.stringify(text)}`)
  return encodeURIComponent(text)
}

/**
 * Returns the query of an address. A parameter with a list is repeated. Without the parameter of an empty list, the
 * service would return all records.
 */
export function queryOf (query: unknown, id: string): string {
  if (query === undefined) return ''
  checkObject(`The query of ${id}`, query)
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query as Record<string, unknown>)) {
    if (value === undefined || value === null) continue
    const values = [value].flat()
    if (values.length === 0) throw new TypeError(`The parameter ${name} of ${id} must not be an empty list`)
    for (const one of values) {
      if (!['string', 'number', 'bigint', 'boolean'].includes(typeof one)) {
        throw new TypeError(`The parameter ${name} of ${id} must be text, a number or a boolean, not a ${typeof one}`)
      }
      parameters.append(name, `${one as string}`)
    }
  }
  return parameters.toString()
}
