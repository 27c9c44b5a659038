import { lookup as lookUp, promises as dns, type LookupAddress } from 'node:dns'
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import type { LookupFunction } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { isPublicAddress, literalAddress } from './address-policy.ts'

/** What is sent, and where. */
export interface WebhookRequest {
  url: string
  /** Stays the same when the event is sent again, so that receivers can discard doubles. */
  id: string
  body: string
  /** Each signs; a rotated one for a while. */
  secrets: string[]
}

/** What came back: a status, or the reason why there is none. */
export interface WebhookResponse {
  status?: number
  error?: string
  retryAfter?: string
}

export interface WebhookClient {
  /** Never fails but by `signal`; an answer is there within `CALL_MS`. */
  call: (call: WebhookRequest, signal: AbortSignal) => Promise<WebhookResponse>
  close: () => void
}

/** Says which addresses a name stands for. */
export type Resolve = (host: string, done: (error: Error | null, addresses: LookupAddress[]) => void) => void

/** How long a call may take altogether, in ms. */
export const CALL_MS = 15_000

/** Read of an answer's body at most, in bytes and ms, so that its connection can be used again. */
const BODY_BYTES = 16_384
const BODY_MS = 1_000

/** An idle connection is kept this long, in ms: less than what most servers keep theirs. */
const IDLE_MS = 4_000

/** Its message is for the owner of the webhook as it stands. */
class Explained extends Error {}

/** How a name server is asked: so long at a time, in ms, and so often. */
const ASKED = { timeout: 2_000, tries: 2 }

/**
 * Asks the name servers, from this process itself. The system's own way takes a thread for as long as a name server is
 * silent, and there are few: anybody's dead names would hold up everybody's, and the database's connections.
 */
const resolveByDns: Resolve = (host, done) => {
  // RFC 6761 section 6.3.
  if (/(^|\.)localhost\.?$/i.test(host)) return done(null, [{ address: '127.0.0.1', family: 4 }])
  const resolver = new dns.Resolver(ASKED)
  Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]).then((answers): void => {
    const addresses = answers.flatMap((answer, i) => answer.status === 'rejected' ? [] : answer.value.map((address) => ({ address, family: i === 0 ? 4 : 6 })))
    if (addresses.length > 0) done(null, addresses)
    else done(new Explained('The name cannot be resolved'), [])
  })
}

/** As this machine does, with its file of hosts: where private addresses may be called, names that only it knows are. */
const resolveLocally: Resolve = (host, done) => { lookUp(host, { all: true }, done) }

/**
 * Calls webhooks. The address that a name stands for is judged when the connection is made, and the
 * connection goes to that address and no other; a redirection is an answer like any other.
 */
export function createWebhookClient ({ allowPrivate, resolve = allowPrivate ? resolveLocally : resolveByDns }: { allowPrivate: boolean, resolve?: Resolve | undefined }): WebhookClient {
  const lookup: LookupFunction = (host, options, done) => {
    resolve(host, (error, addresses) => {
      if (error !== null) return done(error, '')
      if (!allowPrivate && !addresses.every(({ address }) => isPublicAddress(address))) return done(new Explained('The name stands for an address that is not public'), '')
      const [first] = addresses
      if (first === undefined) return done(new Explained('The name stands for no address'), '')
      if (options.all === true) done(null, addresses)
      else done(null, first.address, first.family)
    })
  }
  const options = { keepAlive: true, timeout: IDLE_MS, maxFreeSockets: 8, lookup }
  const agents = { http: new HttpAgent(options), https: new HttpsAgent(options) }

  async function call (call: WebhookRequest, signal: AbortSignal): Promise<WebhookResponse> {
    const literal = literalAddress(call.url)
    if (literal !== undefined && !allowPrivate && !isPublicAddress(literal)) return { error: 'The address is not public' }
    const deadline = Date.now() + CALL_MS
    for (;;) {
      try {
        return await send(call, deadline, signal)
      } catch (error) {
        if (signal.aborted) throw error
        // The receiver closed an idle connection at the moment in which it was used again.
        if (error instanceof StaleConnection) continue
        return { error: reasonOf(error) }
      }
    }
  }

  async function send ({ url, id, body, secrets }: WebhookRequest, deadline: number, signal: AbortSignal): Promise<WebhookResponse> {
    const now = new Date()
    const secure = url.startsWith('https:')
    return await new Promise((resolve, reject) => {
      const request = (secure ? httpsRequest : httpRequest)(url, {
        method: 'POST',
        agent: secure ? agents.https : agents.http,
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
      // A timer of its own: composed abort signals are dear at a thousand calls a second.
      const late = setTimeout(() => { request.destroy(new Explained(`There was no answer within ${CALL_MS / 1_000} seconds`)) }, deadline - Date.now())
      let answered = false
      request.on('close', () => {
        clearTimeout(late)
        // Whatever Node gives up in silence is no answer.
        if (!answered) reject(new Explained('The connection was closed without an answer'))
      })
      request.on('error', (error: NodeJS.ErrnoException) => {
        reject(request.reusedSocket && error.code === 'ECONNRESET' ? new StaleConnection() : error)
      })
      // To 101, of which Node says nothing but this.
      request.on('upgrade', ({ statusCode }, socket) => {
        socket.destroy()
        resolve({ status: statusCode ?? 0 })
      })
      request.on('response', (response) => {
        answered = true
        const { statusCode, headers } = response
        const retryAfter = headers['retry-after']
        discard(response, () => { resolve({ status: statusCode ?? 0, ...(retryAfter === undefined ? {} : { retryAfter }) }) })
      })
      request.end(body)
    })
  }

  return {
    call,
    close () {
      agents.http.destroy()
      agents.https.destroy()
    }
  }
}

class StaleConnection extends Error {}

/** Reads a short body to its end, and cuts off any other. */
function discard (response: IncomingMessage, done: () => void): void {
  let bytes = 0
  const timer = setTimeout(() => { response.destroy() }, BODY_MS)
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > BODY_BYTES) response.destroy()
  })
  response.on('error', () => {})
  response.on('close', () => {
    clearTimeout(timer)
    done()
  })
}

const REASONS: Record<string, string> = {
  ECONNREFUSED: 'The address refused the connection',
  ECONNRESET: 'The connection was closed without an answer',
  EPIPE: 'The connection was closed without an answer',
  ETIMEDOUT: 'The address cannot be reached',
  EHOSTUNREACH: 'The address cannot be reached',
  ENETUNREACH: 'The address cannot be reached',
  ENOTFOUND: 'The name cannot be resolved',
  EAI_AGAIN: 'The name cannot be resolved'
}

/** In words for the webhook's owner; nothing of what our network looks like. */
function reasonOf (error: unknown): string {
  if (error instanceof Explained) return error.message
  const { code = '' } = error as NodeJS.ErrnoException
  const known = REASONS[code] ?? REASONS[(error as AggregateError).errors?.[0]?.code]
  if (known !== undefined) return known
  if (code.startsWith('HPE_')) return 'The answer is not HTTP'
  return /CERT|TLS|SSL|SIGNED/.test(code) ? `The connection is not secure: ${code}` : 'The call failed'
}
