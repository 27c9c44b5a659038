import { randomBytes, randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Reply } from './client.ts'
import type { Act } from './ledger.ts'
import type { Store } from './harness.ts'

/** Ship dates are labels: each order has its own. */
let nextInstant = Date.parse('2031-01-01T00:00:00.000Z')

/** A client that gets no answer for this long gives up, in ms; that is a violation. A database is away for a minute. */
const PATIENCE_MS = 180_000

export interface Workload {
  /** Lets every worker finish what it does, and says how many gave up. */
  stop: () => Promise<number>
  /** Every answer, repetitions included. */
  replies: Reply[]
}

export interface WorkloadOptions {
  workers: number
  /** Ask again, under the same key, until there is an answer. Otherwise each act is asked once. */
  retry: boolean
  /** How long a worker thinks after an answer, in ms. */
  pause?: number
  /** Send some acts twice at the same moment. */
  twice?: boolean
  /** Sees every answer. */
  onReply?: (act: Act, reply: Reply) => void
}

/** Many clients that open, order, cancel, complete and count, each act under an Idempotency-Key of its own. */
export function startWorkload (store: Store, { workers, retry, pause = 0, twice = false, onReply = () => {} }: WorkloadOptions): Workload {
  const { ledger, client } = store
  const replies: Reply[] = []
  const stopped = new AbortController()

  async function send (act: Act): Promise<Reply> {
    const reply = await client.send({ ...act, headers: { 'idempotency-key': act.key } })
    replies.push(reply)
    onReply(act, reply)
    return reply
  }

  async function untilAnswered (act: Act): Promise<Reply | undefined> {
    const deadline = Date.now() + PATIENCE_MS
    while (Date.now() < deadline) {
      const reply = await send(act)
      if (!retry || !isUndecided(reply)) return reply
      await sleep(randomInt(10, 120))
    }
    return undefined
  }

  /** @returns whether the act got its answer */
  async function perform (act: Act): Promise<boolean> {
    if (!retry) ledger.unanswered(act)
    const again = twice && Math.random() < 0.3
    const [reply, other] = await Promise.all([untilAnswered(act), again ? untilAnswered(act) : undefined])
    if (reply === undefined || isUndecided(reply)) {
      ledger.unanswered(act)
      // Nobody there: no reason to ask all the time.
      if (!retry) await sleep(20)
      return !retry
    }
    // What was refused is not remembered: the other of the two may find the store in another state.
    const answers = [reply, ...other === undefined || isUndecided(other) ? [] : [other]]
    const done = answers.filter(({ status }) => status < 300)
    ledger.note(act, done[0] ?? reply)
    if (new Set(done.map(({ status, text }) => `${status} ${text}`)).size > 1) throw new Error(`the same request was answered ${done.map(({ status, text }) => `${status} ${text}`).join(' and ')}`)
    return true
  }

  async function work (worker: number): Promise<boolean> {
    const own: string[] = []
    for (let i = 0; !stopped.signal.aborted; i++) {
      const act = choose(store, `${worker}-${i}`, own)
      if (!await perform(act)) return false
      if (act.kind === 'order' && ledger.orders.get(act.label)?.acknowledged === true) own.push(act.label)
      if (pause > 0) await sleep(Math.random() * pause * 2)
    }
    return true
  }

  const working = Promise.all(Array.from({ length: workers }, async (_, worker) => await work(worker)))
  // Looked at by `stop`; until then a worker that broke must not end the process.
  working.catch(() => {})
  return {
    replies,
    async stop () {
      stopped.abort()
      return (await working).filter((patient) => !patient).length
    }
  }
}

/** No answer, or one that says to ask again. */
export function isUndecided ({ status, body }: Reply): boolean {
  return status === 0 || status === 503 || body?.code === 'idempotency_key_in_use'
}

/** What a client wants next. Only its own orders are cancelled and completed, so that it knows what must come of it. */
function choose ({ categoryId, pets, ledger }: Store, name: string, own: string[]): Act {
  const key = `${name}-${randomBytes(6).toString('hex')}`
  const dice = Math.random()
  if (dice < 0.25) return { kind: 'pet', label: `pet ${key}`, key, method: 'POST', path: '/pets', body: { name: `pet ${key}`, categoryId } }
  if (dice < 0.4) return { kind: 'message', label: `message ${key}`, key, method: 'POST', path: '/messages', body: { message: `message ${key}` } }
  if (dice < 0.6 && own.length > 0) {
    const [label] = own.splice(randomInt(own.length), 1) as [string]
    const path = `/store/orders/${ledger.orders.get(label)!.id}`
    if (dice < 0.5) return { kind: 'cancel', label, key, method: 'DELETE', path }
    return { kind: 'complete', label, key, method: 'PATCH', path, body: { complete: true } }
  }
  const petId = pets[randomInt(pets.length)]!
  if (dice < 0.68) return { kind: 'count', label: '', key, method: 'PATCH', path: `/inventory/${petId}`, body: { quantity: randomInt(0, 150) } }
  return anOrder(petId, randomInt(1, 4), key)
}

export function anOrder (petId: number, quantity: number, key: string): Act {
  const label = new Date(nextInstant++).toISOString()
  return { kind: 'order', label, key, method: 'POST', path: '/store/orders', body: { petId, quantity, shipDate: label } }
}
