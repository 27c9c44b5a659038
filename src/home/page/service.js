/** Where the service is: this file lies two folders below, whatever a proxy has put before it. */
const SERVICE = new URL('../../', import.meta.url)

/** The service said no, in the words of its own. */
export class Refusal extends Error {
  /** @param {{ code: string, message: string, status: number }} error */
  constructor ({ code, message, status }) {
    super(message)
    this.code = code
    this.status = status
  }
}

/** No answer came; whether the request took effect is not known. */
export class Unreachable extends Error {
  constructor () {
    super('The service cannot be reached.')
  }
}

/** @typedef {{ key?: string | undefined, body?: unknown, headers?: Record<string, string>, signal?: AbortSignal }} Options */

/**
 * Sends a request; the answer is any but an error.
 *
 * @param {string} method
 * @param {string} path from the root of the service, without a slash before it
 * @param {Options} [options]
 * @returns {Promise<Response>}
 * @throws {Refusal | Unreachable}
 */
export async function send (method, path, { key, body, headers = {}, signal } = {}) {
  /** @type {RequestInit} */
  const request = { method, headers: { ...headers }, cache: 'no-store', credentials: 'omit' }
  if (key !== undefined) Object.assign(/** @type {object} */(request.headers), { Authorization: `Bearer ${key}` })
  if (body !== undefined) {
    Object.assign(/** @type {object} */(request.headers), { 'Content-Type': 'application/json' })
    request.body = JSON.stringify(body)
  }
  if (signal !== undefined) request.signal = signal
  const response = await fetch(new URL(path, SERVICE), request).catch(() => { throw new Unreachable() })
  if (response.ok) return response
  throw new Refusal(await errorOf(response))
}

/**
 * @param {string} path
 * @param {string} key
 * @param {unknown} body
 */
export async function post (path, key, body) {
  const answer = await send('POST', path, { key, body, headers: { 'Idempotency-Key': newIdempotencyKey() } })
  return await answer.json()
}

/**
 * Walks a list through its pages.
 *
 * @param {string} path
 * @param {Record<string, string>} filters
 * @param {string} key
 * @param {number} pages how many are read at most
 * @param {AbortSignal} signal
 * @returns {Promise<{ records: any[], whole: boolean }>}
 */
export async function walk (path, filters, key, pages, signal) {
  const records = []
  const query = new URLSearchParams({ ...filters, limit: '100' })
  for (let page = 0; page < pages; page++) {
    const answer = await send('GET', `${path}?${query}`, { key, signal })
    records.push(...await answer.json())
    const next = /<([^>]*)>; rel="next"/.exec(answer.headers.get('Link') ?? '')?.[1]
    if (next === undefined) return { records, whole: true }
    query.set('cursor', new URL(next, SERVICE).searchParams.get('cursor') ?? '')
  }
  return { records, whole: false }
}

/** A proxy between may answer with something else than the service's JSON. */
async function errorOf (/** @type {Response} */ response) {
  const { status } = response
  const body = await response.json().catch(() => undefined)
  if (typeof body?.message === 'string') return { code: String(body.code), message: body.message, status }
  return { code: 'unknown', message: `Something between you and the service answered ${status}.`, status }
}

/** `crypto.randomUUID` is not there on a page that came over plain HTTP from another machine. */
export function newIdempotencyKey () {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** This tab's key, also for the reference; not that of another service below the same host. */
const ITEM = `petstore key ${SERVICE.pathname}`

export function keptKey () {
  return sessionStorage.getItem(ITEM) ?? undefined
}

/** @param {string | undefined} key */
export function keepKey (key) {
  if (key === undefined) sessionStorage.removeItem(ITEM)
  else sessionStorage.setItem(ITEM, key)
}
