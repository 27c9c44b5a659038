// A client that passes the exam, as plain requests. Its argument is a list of flaws to have, each of which fails one
// paper: node client.mjs first-page,no-if-match

import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

const flaws = new Set(process.argv[2]?.split(','))
const has = (flaw) => flaws.has(flaw)

const RETRIES = 4
const FIRST_PAUSE_MS = 200
const TRANSIENT = [408, 429, 502, 503, 504]

class ServiceError extends Error {
  constructor (response, body) {
    super(body?.message ?? `HTTP ${response.status}`)
    this.status = response.status
    this.code = body?.code
    this.retryAfter = response.headers.get('retry-after')
  }
}

class BrokenBody extends Error {}

let url, apiKey, timeoutMs
/** When the limit that the service has told allows the next request. */
let mayCallAt = 0

async function call (method, path, { body, headers = {}, check = () => {} } = {}) {
  let key = method === 'GET' || has('no-key') ? undefined : randomUUID()
  for (let attempt = 0; ; attempt++) {
    try {
      if (!has('unlimited')) await sleep(mayCallAt - Date.now())
      const response = await fetch(url + path, {
        method,
        body: body && JSON.stringify(body),
        headers: {
          authorization: `Bearer ${apiKey}`,
          ...body && { 'content-type': 'application/json' },
          ...key && { 'idempotency-key': key },
          ...headers
        },
        // In the papers, only writes get no answer. A busy machine can be late with any request.
        signal: has('no-time-out') ? undefined : AbortSignal.timeout(method === 'GET' ? 20 * timeoutMs : timeoutMs)
      })
      const [, left, seconds] = /r=(\d+);t=(\d+)/.exec(response.headers.get('ratelimit')) ?? []
      mayCallAt = left === '0' ? Date.now() + seconds * 1000 : 0
      const content = await response.text()
      if (response.status === 304) return { response }
      const data = parse(content)
      if (!response.ok) throw new ServiceError(response, data)
      check(data)
      return { response, data }
    } catch (error) {
      if (attempt >= retriesOf(error) || !isTransient(error)) throw error
      await sleep(pauseAfter(error, attempt))
      const isSilent = error.name === 'TimeoutError'
      if (key !== undefined && has(isSilent ? 'time-out-key' : 'new-key')) key = randomUUID()
    }
  }
}

function parse (content) {
  try {
    return JSON.parse(content)
  } catch {
    throw new BrokenBody('The body is no JSON')
  }
}

function retriesOf (error) {
  if (has('no-retry') && error.status === 503) return 0
  return has('endless') && error.status === undefined ? Infinity : RETRIES
}

function isTransient ({ status, code }) {
  if (has('hopeless') && status === 404) return true
  if (has('repeats-the-end') && code === 'operation_sunset') return true
  return status === undefined || TRANSIENT.includes(status)
}

function pauseAfter ({ status, retryAfter = null }, attempt) {
  const isDate = retryAfter !== null && !/^\d+$/.test(retryAfter)
  if (retryAfter !== null && !has('impatient') && !(isDate && has('no-dates'))) {
    return isDate ? Date.parse(retryAfter) - Date.now() : retryAfter * 1000
  }
  // Without a random share, of which one run in 300 had so much that the pauses seemed to grow.
  if (has('constant')) return 4 * FIRST_PAUSE_MS
  const longest = has('endless') ? 10 : FIRST_PAUSE_MS * 2 ** attempt
  // Long ones, so that they stay in step on a busy machine.
  return status === undefined && has('in-step') ? 2 * longest : longest * (0.5 + Math.random() / 2)
}

const STATUSES = ['available', 'pending', 'sold']

function checkPet (pet) {
  const isPet = typeof pet?.id === 'number' && typeof pet.name === 'string' && typeof pet.categoryId === 'number'
  if (!isPet && !has('trusting')) throw new BrokenBody('The body is no pet')
  if (has('closed-enum') && !STATUSES.includes(pet.status)) throw new BrokenBody(`The status ${pet.status} is unknown`)
  if (has('closed-record') && Object.keys(pet).length > 4) throw new BrokenBody('The pet has an unknown member')
}

/** Pets with their entity tags, by id. */
const cache = new Map()

/** Secrets of the receiver, and the events that it took. */
const secrets = []
const seen = new Set()
const taken = []

const tasks = {
  async getPet ({ petId }) {
    try {
      return (await call('GET', `/pets/${petId}`, { check: checkPet })).data
    } catch (error) {
      if (error.code !== 'operation_sunset' || has('stays') || has('vague')) throw error
      const { data: [pet] } = await call('GET', `/pets?id=${petId}`, { check: ([pet]) => { checkPet(pet) } })
      return pet
    }
  },

  async refreshPet ({ petId }) {
    const known = cache.get(petId)
    if (known !== undefined && has('stale')) return known.pet
    const headers = known === undefined || has('no-cache') ? {} : { 'if-none-match': known.etag }
    const { response, data } = await call('GET', `/pets/${petId}`, { headers, check: checkPet })
    if (response.status === 304) return known.pet
    cache.set(petId, { etag: response.headers.get('etag'), pet: data })
    return data
  },

  async listPets () {
    const ids = []
    for (let path = '/pets?limit=50'; path !== undefined;) {
      const { response, data } = await call('GET', path)
      ids.push(...data.map(({ id }) => id))
      path = has('first-page') ? undefined : /<([^>]+)>; rel="next"/.exec(response.headers.get('link'))?.[1]
    }
    return has('repeats-records') ? [...ids, ids[0]] : ids
  },

  async placeOrder (body) {
    return (await call('POST', '/store/orders', { body })).data
  },

  async appendToName ({ petId, text }) {
    for (;;) {
      const { response, data: { name } } = await call('GET', `/pets/${petId}`, { check: checkPet })
      const headers = has('no-if-match') ? {} : { 'if-match': response.headers.get('etag') }
      try {
        return (await call('PATCH', `/pets/${petId}`, { body: { name: name + text }, headers })).data
      } catch (error) {
        if (error.status !== 412 || has('no-second-read')) throw error
      }
    }
  },

  async followEvents ({ after, count }) {
    const ids = []
    let position = after
    while (ids.length < count) {
      const stop = new AbortController()
      const response = await fetch(`${url}/events${position === undefined ? '' : `?after=${position}`}`, {
        headers: { authorization: `Bearer ${apiKey}`, accept: 'text/event-stream' }, signal: stop.signal
      })
      if (response.status === 410) {
        if (has('lost-position')) throw new ServiceError(response, await response.json())
        position = undefined
        continue
      }
      let rest = ''
      try {
        for await (const part of response.body.pipeThrough(new TextDecoderStream())) {
          const blocks = (rest + part).split('\n\n')
          rest = blocks.pop()
          for (const block of blocks) {
            const id = /^id: (\d+)$/m.exec(block)?.[1]
            if (id === undefined || ids.length === count) continue
            ids.push(Number(id))
            position = has('from-the-start') ? after : Number(id) + (has('skips') ? 1 : 0)
          }
          if (ids.length === count) break
        }
      } catch {
        // The connection broke. The next one begins after the last event.
      }
      stop.abort()
    }
    return ids
  },

  async receiveWebhooks ({ secret }) {
    secrets.push(secret)
    const server = createServer(async (request, response) => {
      const isValid = receive(request.headers, await text(request))
      if (isValid) response.writeHead(204).end()
      else if (has('asks-to-wait')) response.writeHead(503, { 'retry-after': '7200' }).end()
      else response.writeHead(has('gone') ? 410 : 400).end()
    }).listen(0, '127.0.0.1')
    await new Promise((resolve) => { server.once('listening', resolve) })
    return { url: `http://127.0.0.1:${server.address().port}/` }
  },

  async changeSecret ({ secret }) {
    if (!has('old-secret')) secrets.push(secret)
  },

  async receivedEvents () {
    return taken
  }
}

/** Takes the event of a valid request. Returns whether the request is valid. */
function receive (headers, body) {
  const id = headers['webhook-id']
  const timestamp = headers['webhook-timestamp']
  if (Math.abs(Date.now() / 1000 - timestamp) > 300 && !has('no-age')) return false
  const signatures = has('one-signature') ? [headers['webhook-signature']] : headers['webhook-signature'].split(' ')
  const isSigned = secrets.some((secret) => {
    const signed = createHmac('sha256', Buffer.from(secret.slice('whsec_'.length), 'base64')).update(`${id}.${timestamp}.${body}`)
    const own = Buffer.from(`v1,${signed.digest('base64')}`)
    return signatures.some((other) => other.length === own.length && timingSafeEqual(own, Buffer.from(other)))
  })
  if (!isSigned && !has('no-signature')) return false
  const event = JSON.parse(body)
  if (has('in-order') && event.id < taken.at(-1)) return true
  if (!seen.has(id) || has('takes-twice')) taken.push(event.id)
  seen.add(id)
  return true
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, do: task, args, ...session } = JSON.parse(line);
  ({ url, apiKey, timeoutMs } = session)
  answer(id, task, args).then((content) => { console.log(JSON.stringify({ id, ...content })) })
}
process.exit()

async function answer (id, task, args) {
  if (tasks[task] === undefined || has(`no-${task}`)) {
    return { ok: false, error: { code: 'unknown_task', text: `There is no task ${task}` } }
  }
  try {
    return { ok: true, result: await tasks[task](args) ?? null }
  } catch (error) {
    const { message, status, code } = error
    return { ok: false, error: has('vague') ? { text: 'It failed' } : { status, code, text: message } }
  }
}
