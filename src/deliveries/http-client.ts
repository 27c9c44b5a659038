import { lookup as lookUp, promises as dns, type LookupAddress } from 'node:dns'
import {
  Agent as HttpAgent, maxHeaderSize, request as httpRequest, type ClientRequest
} from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import type { LookupFunction } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { hasPrivateHost, isPublicAddress } from './address-policy.ts'
import { explain, ExplainedError } from './explained-errors.ts'
import { keptFields, readResponse } from './response-reader.ts'
import type { Exchange, HeaderField } from './schemas.ts'

export interface WebhookRequest {
  url: string
  /** Stays the same when the event is sent again, so that receivers can discard duplicates. */
  id: string
  body: string
  /** Each secret signs the request. After a rotation, the previous secret signs for a while. */
  secrets: string[]
  /** Time of the signature; by default, when the request is sent. */
  signedAt?: Date
}

/** A status, or the reason why there is none, and what was sent and received. */
export interface WebhookResponse extends Exchange {
  status?: number
  error?: string
  retryAfter?: string
  /** The request was not sent, and is due again after this time in ms; the attempt does not count. */
  postponedMs?: number
  /** Called when the result of the attempt is stored, with the events that follow from it. */
  onStored?: () => Promise<void>
}

export interface WebhookClient {
  /** Rejects only when `signal` aborts. Resolves within `timeoutMs` and the time for reading a response body. */
  send: (request: WebhookRequest, signal: AbortSignal) => Promise<WebhookResponse>
  /** Limits the time of a request until the head of its response, in ms. */
  timeoutMs: number
  close: () => void
}

export interface WebhookClientOptions {
  /** Allows requests to private, loopback and link-local addresses. */
  allowPrivate: boolean
  resolve?: Resolve | undefined
  timeoutMs?: number | undefined
}

type Resolved = (error: Error | null, addresses: LookupAddress[]) => void

/** Resolves a host name to its addresses. */
export type Resolve = (host: string, done: Resolved) => void

/** Limits the time of a request until the head of its response. */
export const REQUEST_TIMEOUT_MS = 15_000

/**
 * Limit what a receiver sends before the head of its response. The parser knows no limit for informational responses
 * (RFC 9110 section 15.2) and empty lines, and each costs a few microseconds.
 */
const MAX_INFORMATIONAL = 8
const MAX_BYTES_BEFORE_HEAD = (MAX_INFORMATIONAL + 1) * maxHeaderSize

/** Ends the reason why a private address was not called. */
const UNLESS_ALLOWED = ', and WEBHOOKS_ALLOW_PRIVATE is not true'

/** Time for which an idle connection stays open: less than the keep-alive time of most servers. */
const IDLE_TIMEOUT_MS = 4_000

/** Timeout in ms of one query to a name server, and number of queries. */
const DNS_QUERY = { timeout: 2_000, tries: 2 }

/** The receiver closed an idle connection at the moment at which the client reused it. */
class StaleConnectionError extends Error {}

/**
 * Resolves a name by queries to the name servers from this process. `dns.lookup` blocks one of libuv's few threads
 * while a name server is silent: dead names of one account would delay other accounts and database connections.
 */
const resolveByDns: Resolve = (host, done) => {
  const resolver = new dns.Resolver(DNS_QUERY)
  void Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]).then((results): void => {
    const addresses = results.flatMap((result, i) => result.status === 'rejected'
      ? []
      : result.value.map((address) => ({ address, family: i === 0 ? 4 : 6 })))
    if (addresses.length > 0) done(null, addresses)
    else done(new ExplainedError('The host name cannot be resolved'), [])
  })
}

/** Resolves a name with the hosts file of this machine, for services that may call private addresses. */
const resolveBySystem: Resolve = (host, done) => { lookUp(host, { all: true }, done) }

/**
 * Number of names that the system resolves at once. It works on two of them, so the others wait, and with a silent name
 * server each takes seconds: without a limit, a store with dead names kept some 100 KB for each attempt.
 */
const MAX_NAMES = 64

/** Resolves each name once for all who ask meanwhile, and refuses further names while too many are being resolved. */
export function boundResolve (resolve: Resolve, most = MAX_NAMES): Resolve {
  const open = new Map<string, Resolved[]>()
  return (host, done) => {
    const asking = open.get(host)
    if (asking !== undefined) {
      asking.push(done)
    } else if (open.size >= most) {
      process.nextTick(() => { done(new ExplainedError('Too many host names are being resolved'), []) })
    } else {
      const all = [done]
      open.set(host, all)
      resolve(host, (error, addresses) => {
        open.delete(host)
        for (const each of all) each(error, addresses)
      })
    }
  }
}

interface Connections {
  http: HttpAgent
  https: HttpsAgent
}

/**
 * Creates a client that sends webhook requests. It checks the address of a name when it connects, and connects to
 * the checked address and no other. It returns a redirection as a response and does not follow it.
 */
export function createWebhookClient (options: WebhookClientOptions): WebhookClient {
  const { allowPrivate, timeoutMs = REQUEST_TIMEOUT_MS } = options
  const { resolve = allowPrivate ? boundResolve(resolveBySystem) : resolveByDns } = options
  const lookup = createLookup(resolve, allowPrivate)
  const agentOptions = { keepAlive: true, timeout: IDLE_TIMEOUT_MS, maxFreeSockets: 8, lookup }
  const connections: Connections = { http: new HttpAgent(agentOptions), https: new HttpsAgent(agentOptions) }

  async function send (request: WebhookRequest, signal: AbortSignal): Promise<WebhookResponse> {
    if (!allowPrivate && hasPrivateHost(request.url)) return { error: `The address is not public${UNLESS_ALLOWED}` }
    const deadline = performance.now() + timeoutMs
    for (;;) {
      let sent: Exchange = {}
      try {
        const opened = openRequest(connections, request, signal)
        sent = { request: { url: request.url, fields: fieldsOf(opened) } }
        return { ...await sendOnce(opened, request.body, { deadline, timeoutMs }), ...sent }
      } catch (error) {
        if (signal.aborted) throw error
        if (error instanceof StaleConnectionError) continue
        return { error: explain(error), ...sent }
      }
    }
  }

  return {
    send,
    timeoutMs,
    close () {
      connections.http.destroy()
      connections.https.destroy()
    }
  }
}

/** Addresses of a name that a request tries. A name can have thousands, of hosts that never agreed. */
const MAX_ADDRESSES = 4

/** Returns a lookup for sockets that rejects names with an address that is not public. */
function createLookup (resolve: Resolve, allowPrivate: boolean): LookupFunction {
  return (host, options, done) => {
    resolve(host, (error, addresses) => {
      if (error !== null) return done(error, '')
      if (!allowPrivate && !addresses.every(({ address }) => isPublicAddress(address))) {
        return done(new ExplainedError(`The host name resolves to an address that is not public${UNLESS_ALLOWED}`), '')
      }
      const tried = addresses.slice(0, MAX_ADDRESSES)
      const [first] = tried
      if (first === undefined) return done(new ExplainedError('The host name resolves to no address'), '')
      if (options.all === true) done(null, tried)
      else done(null, first.address, first.family)
    })
  }
}

interface SendLimits {
  /** Time at which the request is aborted, by `performance.now()`. */
  deadline: number
  timeoutMs: number
}

async function sendOnce (
  request: ClientRequest, body: string, { deadline, timeoutMs }: SendLimits
): Promise<WebhookResponse> {
  return await new Promise((resolve, reject) => {
    // A timer of its own: composed abort signals are expensive at a thousand requests a second.
    const timeout = setTimeout(() => {
      request.destroy(new ExplainedError(`There was no response within ${timeoutMs / 1_000} seconds`))
    }, deadline - performance.now())
    let hasResponse = false
    limitBeforeHead(request, reject)
    request.on('close', () => {
      clearTimeout(timeout)
      // Node may close a request without an error and without a response.
      if (!hasResponse) reject(new ExplainedError('The connection was closed without a response'))
    })
    request.on('error', (error: NodeJS.ErrnoException) => {
      reject(request.reusedSocket && error.code === 'ECONNRESET' ? new StaleConnectionError() : error)
    })
    // For 101, Node emits no other event than this.
    request.on('upgrade', (response, socket) => {
      socket.destroy()
      resolve({ status: response.statusCode ?? 0, answer: { ...keptFields(response), body: '' } })
    })
    request.on('response', (response) => {
      hasResponse = true
      // The body has a time-out of its own.
      clearTimeout(timeout)
      const { statusCode, headers } = response
      const retryAfter = headers['retry-after']
      readResponse(response, (answer) => {
        resolve({ status: statusCode ?? 0, answer, ...(retryAfter === undefined ? {} : { retryAfter }) })
      })
    })
    request.end(body)
  })
}

/** Matches an informational response, with empty lines after it. */
const INFORMATIONAL = /HTTP\/1\.\d 1[^]*?\r?\n\r?\n[\r\n]*/y

/** Counts the informational responses from the first head in a chunk on. */
function informationalIn (chunk: Buffer): number {
  const text = chunk.toString('latin1')
  let count = 0
  INFORMATIONAL.lastIndex = Math.max(0, text.indexOf('HTTP/1.'))
  while (INFORMATIONAL.test(text)) count++
  return count
}

/**
 * Ends a request whose receiver sends too much before the head of its response. The parser does not stop within what
 * was read at once: 2,600 informational responses in 64 KB took it 26 ms. So it gets nothing of a chunk with too many.
 *
 * @param fail called with the reason, before the parser has one of its own
 */
function limitBeforeHead (request: ClientRequest, fail: (error: Error) => void): void {
  let informational = 0
  const end = (reason: string): void => {
    fail(new ExplainedError(reason))
    request.destroy()
  }
  const checkCount = (count: number): void => {
    if (count > MAX_INFORMATIONAL) end(`There were more than ${MAX_INFORMATIONAL} informational responses (1xx)`)
  }
  request.on('information', () => { checkCount(++informational) })
  request.on('socket', (socket) => {
    const before = socket.bytesRead
    const check = (chunk: Buffer): void => {
      checkCount(informational + informationalIn(chunk))
      if (socket.bytesRead - before > MAX_BYTES_BEFORE_HEAD) {
        end(`There was no response in ${MAX_BYTES_BEFORE_HEAD} bytes`)
      }
      if (request.destroyed) chunk.fill(0)
    }
    const stop = (): void => { socket.off('data', check) }
    // Before the parser.
    socket.prependListener('data', check)
    request.once('response', stop).once('close', stop)
  })
}

function fieldsOf (request: ClientRequest): HeaderField[] {
  return Object.entries(request.getHeaders()).map(([name, value]) => ({ name, value: String(value) }))
}

/** Opens a signed request as Standard Webhooks specifies it. */
function openRequest (
  connections: Connections, { url, id, body, secrets, signedAt: now = new Date() }: WebhookRequest, signal: AbortSignal
): ClientRequest {
  const isSecure = /^https:/i.test(url)
  return (isSecure ? httpsRequest : httpRequest)(url, {
    method: 'POST',
    agent: isSecure ? connections.https : connections.http,
    signal,
    headers: {
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(body),
      'user-agent': 'Petstore/1.0',
      'webhook-id': id,
      'webhook-timestamp': Math.floor(now.getTime() / 1_000),
      'webhook-signature': secrets.map((secret) => new Webhook(secret).sign(id, now, body)).join(' ')
    }
  })
}
