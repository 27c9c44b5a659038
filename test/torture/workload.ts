import { randomBytes, randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Reply } from './client.ts'
import type { WriteRequest } from './ledger.ts'
import type { Store } from './harness.ts'

/** The next ship date. It is the label of an order, so that each order has its own. */
let nextInstant = Date.parse('2031-01-01T00:00:00.000Z')

/** Limits the wait of a client for an answer, repetitions included. An outage of the database takes one minute. */
const ANSWER_TIMEOUT_MS = 180_000

export interface Workload {
  /** Lets every worker finish its current write. @returns the number of workers that got no answer */
  stop: () => Promise<number>
  /** All answers, repetitions included. */
  replies: Reply[]
}

export interface WorkloadOptions {
  workers: number
  /** Repeats a write with the same key until it gets an answer. Otherwise each write is sent once. */
  retry: boolean
  /** The average pause of a worker after an answer, in ms. */
  pause?: number
  /** Sends some writes twice at the same moment. */
  twice?: boolean
  /** Called with every answer. */
  onReply?: (write: WriteRequest, reply: Reply) => void
}

/** Starts clients that create, order, cancel, complete and count, each write with an Idempotency-Key of its own. */
export function startWorkload (store: Store, options: WorkloadOptions): Workload {
  const { workers, retry, pause = 0, twice = false, onReply = () => {} } = options
  const { ledger, client } = store
  const replies: Reply[] = []
  const stopped = new AbortController()

  async function send (write: WriteRequest): Promise<Reply> {
    const reply = await client.send({ ...write, headers: { 'idempotency-key': write.key } })
    replies.push(reply)
    onReply(write, reply)
    return reply
  }

  async function sendUntilAnswered (write: WriteRequest): Promise<Reply | undefined> {
    const deadline = Date.now() + ANSWER_TIMEOUT_MS
    while (Date.now() < deadline) {
      const reply = await send(write)
      if (!retry || !isUndecided(reply)) return reply
      await sleep(randomInt(10, 120))
    }
    return undefined
  }

  /** Sends a write and records its result. @returns whether it got an answer */
  async function runWrite (write: WriteRequest): Promise<boolean> {
    if (!retry) ledger.recordUnanswered(write)
    const again = twice && Math.random() < 0.3
    const [reply, other] = await Promise.all([sendUntilAnswered(write), again ? sendUntilAnswered(write) : undefined])
    if (reply === undefined || isUndecided(reply)) {
      ledger.recordUnanswered(write)
      // The service is down. The pause avoids a busy loop.
      if (!retry) await sleep(20)
      return !retry
    }
    // The service does not store refusals, so that the second of two requests can succeed after a refused first one.
    const answers = [reply, ...other === undefined || isUndecided(other) ? [] : [other]]
    const done = answers.filter(({ status }) => status < 300)
    ledger.record(write, done[0] ?? reply)
    const texts = done.map(({ status, text }) => `${status} ${text}`)
    if (new Set(texts).size > 1) throw new Error(`the same request was answered ${texts.join(' and ')}`)
    return true
  }

  async function work (worker: number): Promise<boolean> {
    const own: string[] = []
    for (let i = 0; !stopped.signal.aborted; i++) {
      const write = chooseWrite(store, `${worker}-${i}`, own)
      if (!await runWrite(write)) return false
      if (write.kind === 'order' && ledger.orders.get(write.label)?.acknowledged === true) own.push(write.label)
      if (pause > 0) await sleep(Math.random() * pause * 2)
    }
    return true
  }

  const working = Promise.all(Array.from({ length: workers }, async (_, worker) => await work(worker)))
  // `stop` reports the error of a worker. Until then, its rejection must not end the process.
  working.catch(() => {})
  return {
    replies,
    async stop () {
      stopped.abort()
      return (await working).filter((answered) => !answered).length
    }
  }
}

/** Detects a missing answer, or one that asks the client to repeat the request. */
export function isUndecided ({ status, body }: Reply): boolean {
  return status === 0 || status === 503 || body?.code === 'idempotency_key_in_use'
}

/** Chooses the next write of a client. It cancels and completes only its own orders, so that it knows the result. */
function chooseWrite ({ categoryId, pets, ledger }: Store, name: string, own: string[]): WriteRequest {
  const key = `${name}-${randomBytes(6).toString('hex')}`
  const dice = Math.random()
  if (dice < 0.25) {
    const label = `pet ${key}`
    return { kind: 'pet', label, key, method: 'POST', path: '/pets', body: { name: label, categoryId } }
  }
  if (dice < 0.4) {
    const label = `message ${key}`
    return { kind: 'message', label, key, method: 'POST', path: '/messages', body: { message: label } }
  }
  if (dice < 0.6 && own.length > 0) {
    const [label] = own.splice(randomInt(own.length), 1) as [string]
    const path = `/store/orders/${ledger.orders.get(label)!.id}`
    if (dice < 0.5) return { kind: 'cancel', label, key, method: 'DELETE', path }
    return { kind: 'complete', label, key, method: 'PATCH', path, body: { complete: true } }
  }
  const petId = pets[randomInt(pets.length)]!
  if (dice < 0.68) {
    const body = { quantity: randomInt(0, 150) }
    return { kind: 'count', label: '', key, method: 'PATCH', path: `/inventory/${petId}`, body }
  }
  return newOrder(petId, randomInt(1, 4), key)
}

export function newOrder (petId: number, quantity: number, key: string): WriteRequest {
  const label = new Date(nextInstant++).toISOString()
  const body = { petId, quantity, shipDate: label }
  return { kind: 'order', label, key, method: 'POST', path: '/store/orders', body }
}
