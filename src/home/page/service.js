/** The URL of the service. This file is two folders below it, whatever path prefix a proxy adds. */
const SERVICE = new URL('../../', import.meta.url)

/** An error response, with the message of the service. */
export class ApiError extends Error {
  /** @param {{ code: string, message: string, status: number }} error */
  constructor ({ code, message, status }) {
    super(message)
    this.code = code
    this.status = status
  }
}

/** The service did not respond, or its response was cut. The request may have taken effect. */
export class Unreachable extends Error {
  constructor () {
    super('The service cannot be reached.')
  }
}

/**
 * @typedef {object} Options
 * @property {string | undefined} [key]
 * @property {unknown} [body]
 * @property {Record<string, string>} [headers]
 * @property {AbortSignal} [signal]
 */

/**
 * @typedef {object} Sent
 * @property {string} method
 * @property {string} path
 * @property {unknown} body of the request
 * @property {string} status
 * @property {string} text of the response
 */

/** The name of this page's requests in the journal of a store. */
export const RUN = 'first-page'

/** @type {Array<(sent: Sent) => void>} */
const listeners = []

/**
 * Calls a function with the answer to each write of this page.
 *
 * @param {(sent: Sent) => void} listener
 */
export function onAnswer (listener) {
  listeners.push(listener)
}

/**
 * Sends a request. Throws if the response is an error.
 *
 * @param {string} method
 * @param {string} path from the root of the service, without a slash before it
 * @param {Options} [options]
 * @returns {Promise<Response>}
 * @throws {ApiError | Unreachable}
 */
export async function send (method, path, { key, body, headers = {}, signal } = {}) {
  /** @type {RequestInit} */
  const request = { method, headers: { ...headers }, cache: 'no-store', credentials: 'omit' }
  if (key !== undefined) {
    Object.assign(/** @type {object} */(request.headers), { Authorization: `Bearer ${key}`, 'Petstore-Run': RUN })
  }
  if (body !== undefined) {
    Object.assign(/** @type {object} */(request.headers), { 'Content-Type': 'application/json' })
    request.body = JSON.stringify(body)
  }
  if (signal !== undefined) request.signal = signal
  const unreachable = () => { throw new Unreachable() }
  const response = await fetch(new URL(path, SERVICE), request).catch(unreachable)
  if (method !== 'GET') {
    const text = await response.clone().text().catch(unreachable)
    const status = `${response.status} ${response.statusText}`
    // The response for a former store comes too late.
    const isLate = key !== undefined && key !== loadKey()
    for (const listener of isLate ? [] : listeners) listener({ method, path: `/${path}`, body, status, text })
  }
  if (response.ok) return response
  throw new ApiError(await errorOf(response))
}

/**
 * Creates a record.
 *
 * @param {string} path
 * @param {string} key
 * @param {unknown} body
 */
export async function post (path, key, body) {
  const response = await send('POST', path, { key, body, headers: { 'Idempotency-Key': newIdempotencyKey() } })
  return await response.json()
}

/**
 * Reads the pages of a list.
 *
 * @param {string} path
 * @param {Record<string, string>} filters
 * @param {string} key
 * @param {number} pages maximum number of pages
 * @param {AbortSignal} signal
 * @returns {Promise<{ records: any[], complete: boolean }>}
 */
export async function readList (path, filters, key, pages, signal) {
  const records = []
  const query = new URLSearchParams({ ...filters, limit: '100' })
  for (let page = 0; page < pages; page++) {
    const response = await send('GET', `${path}?${query}`, { key, signal })
    records.push(...await response.json())
    const next = /<([^>]*)>; rel="next"/.exec(response.headers.get('Link') ?? '')?.[1]
    if (next === undefined) return { records, complete: true }
    query.set('cursor', new URL(next, SERVICE).searchParams.get('cursor') ?? '')
  }
  return { records, complete: false }
}

/** Reads the error of a response. A proxy may respond without the service's JSON. */
async function errorOf (/** @type {Response} */ response) {
  const { status } = response
  const body = await response.json().catch(() => undefined)
  if (typeof body?.message === 'string') return { code: String(body.code), message: body.message, status }
  return { code: 'unknown', message: `A proxy or gateway responded with status ${status}.`, status }
}

/** Creates a random key. `crypto.randomUUID` is missing on pages loaded over plain HTTP from another machine. */
export function newIdempotencyKey () {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Name of the stored key, which the API reference also uses. It differs from other services on the same host. */
const ITEM = `petstore key ${SERVICE.pathname}`

export function loadKey () {
  return sessionStorage.getItem(ITEM) ?? undefined
}

/** @param {string | undefined} key */
export function storeKey (key) {
  store(ITEM, key)
}

/** Name of the key that the user has left for the store of a link. It may be the only copy. */
const FORMER_ITEM = `petstore former key ${SERVICE.pathname}`

export function loadFormerKey () {
  return sessionStorage.getItem(FORMER_ITEM) ?? undefined
}

/** @param {string | undefined} key */
export function storeFormerKey (key) {
  store(FORMER_ITEM, key)
}

function store (/** @type {string} */ item, /** @type {string | undefined} */ key) {
  if (key === undefined) sessionStorage.removeItem(item)
  else sessionStorage.setItem(item, key)
}
