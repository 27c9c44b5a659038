import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '../client.ts'
import { READS, type Answer, type PetStatus, type Request } from './operation.ts'
import { CATEGORY_OF_PETS, type Plan, type Recorder } from './recorder.ts'

/** An object that clients use at the same time, until another one takes its place. */
interface Target {
  object: string
  kind: 'pet' | 'category'
  /** The requests left. It bounds the history of one object. */
  left: number
  /** The entity tags that were seen last, by what they belong to. Other clients make them stale. */
  tags: Map<string, string>
  /** The orders whose ids are known. */
  orders: string[]
}

export interface LoadOptions {
  clients: number
  /** The requests on one object. */
  perObject: number
  /** Returns a client of one of the services, or `undefined` while all are down. */
  choose: () => Client | undefined
}

export interface Load {
  /** Lets every client finish its current request, then reads all objects once more. */
  stop: () => Promise<void>
}

/** Objects in use at the same time. Few, so that clients meet. */
const PETS = 4
const CATEGORIES = 2

/** A client repeats a request with an Idempotency-Key this often while its outcome is unknown. */
const MAX_ATTEMPTS = 5

/** The pause of a client while all services are down. */
const DOWN_MS = 20

/** The pause between two reads of the feed. */
const POLL_MS = 15
const POLL_LIMIT = 100

const FIRST_SHIP_DATE = Date.parse('2031-01-01T00:00:00.000Z')

/** Starts clients that read and write pets, stock, orders, categories and messages of one account. */
export async function startLoad (recorder: Recorder, { clients, perObject, choose }: LoadOptions): Promise<Load> {
  const targets: Target[] = []
  const used: Target[] = []
  let number = 0
  const stopped = new AbortController()

  async function send (client: number, plan: Plan): Promise<Answer | undefined> {
    for (;;) {
      const through = choose()
      if (through !== undefined) return await recorder.send(client, through, plan)
      await sleep(DOWN_MS)
    }
  }

  /** Sends a request, and again with the same key while its outcome is unknown. */
  async function sendPatiently (client: number, plan: Plan, attempts = MAX_ATTEMPTS): Promise<Answer | undefined> {
    for (let attempt = 1; ; attempt++) {
      const answer = await send(client, plan)
      if (answer !== undefined || plan.key === undefined || attempt >= attempts) return answer
      await sleep(randomInt(1, 60))
    }
  }

  /** Creates an object, and repeats the request until it is answered. */
  async function create (client: number, kind: Target['kind'] | 'message', object = `${kind} ${++number}`): Promise<void> {
    const request = (kind === 'message'
      ? { kind: 'create message', message: object }
      : { kind: `create ${kind}`, name: object }) as Request
    const plan = { object, request, key: `key ${object}`.replaceAll(' ', '-') }
    const answers = [sendPatiently(client, plan, Infinity)]
    // The same request at the same moment, as of a client that repeats it too soon.
    if (Math.random() < 0.1) answers.push(sendPatiently(client, plan, Infinity))
    await Promise.all(answers)
    if (kind === 'message' || object === CATEGORY_OF_PETS) return
    const target: Target = { object, kind, left: perObject, tags: new Map(), orders: [] }
    targets.push(target)
    used.push(target)
    if (kind === 'pet') await sendPatiently(client, withKey({ object, request: { kind: 'count', quantity: 20 } }, 0.5))
  }

  function withKey (plan: Plan, share = 0.6): Plan {
    return Math.random() < share ? { ...plan, key: `key-${++number}` } : plan
  }

  async function use (client: number, target: Target): Promise<void> {
    target.left--
    const request = target.kind === 'pet'
      ? choosePetRequest(target, () => ++number)
      : chooseCategoryRequest(target, ++number)
    const { object, tags } = target
    const name = tagNameOf(request)
    const tag = tags.get(name)
    const isRead = READS.has(request.kind)
    const isConditional = !isRead && request.kind !== 'place order' && tag !== undefined && Math.random() < 0.5
    const plan: Plan = { object, request, ...isConditional ? { ifMatch: tag } : {} }
    const keyed = isRead ? plan : withKey(plan)
    const twice = keyed.key !== undefined && Math.random() < 0.1
    const [answer] = await Promise.all([sendPatiently(client, keyed), twice ? sendPatiently(client, keyed) : undefined])
    if (answer?.etag !== undefined) tags.set(name, answer.etag)
    if (answer?.status === 201 && request.kind === 'place order') target.orders.push(request.order)
    if (keyed.key === undefined || answer === undefined || answer.status >= 300) return
    // The key must answer as before, whatever has happened since, and refuse another request.
    if (Math.random() < 0.15) await sendPatiently(client, keyed)
    if (Math.random() < 0.03) await sendPatiently(client, { ...keyed, request: { kind: `delete ${target.kind}` } }, 1)
  }

  async function work (client: number): Promise<void> {
    while (!stopped.signal.aborted) {
      const target = targets[randomInt(targets.length)]
      if (target !== undefined && target.left > 0) {
        await use(client, target)
      } else if (target !== undefined) {
        targets.splice(targets.indexOf(target), 1)
        await create(client, target.kind)
      }
      if (Math.random() < 0.1) await createAndRead(client)
      await sleep(Math.random() * 3)
    }
  }

  async function createAndRead (client: number): Promise<void> {
    const object = `message ${++number}`
    await create(client, 'message', object)
    await send(client, { object, request: { kind: 'read message' } })
  }

  async function followFeed (): Promise<void> {
    for (let after = 0; !stopped.signal.aborted;) {
      const through = choose()
      if (through !== undefined) after = await recorder.poll(through, after, POLL_LIMIT)
      await sleep(POLL_MS)
    }
  }

  await create(0, 'category', CATEGORY_OF_PETS)
  for (let i = 0; i < PETS; i++) await create(0, 'pet')
  for (let i = 0; i < CATEGORIES; i++) await create(0, 'category')
  const working = Promise.all([...Array.from({ length: clients }, async (_, i) => { await work(i + 1) }), followFeed()])
  // `stop` reports an error. Until then, its rejection must not end the process.
  working.catch(() => {})

  return {
    async stop () {
      stopped.abort()
      await working
      for (const { object, kind } of used) {
        const kinds = kind === 'pet' ? ['read pet', 'read stock', 'list orders'] : ['read category']
        for (const kind of kinds) await send(0, { object, request: { kind } as Request })
      }
    }
  }
}

/** Returns the name of the entity tag that a request takes or gives. */
function tagNameOf (request: Request): string {
  if ('order' in request) return request.order
  return request.kind === 'count' || request.kind === 'read stock' ? 'stock' : 'record'
}

const STATUSES: PetStatus[] = ['available', 'pending', 'sold']

/** Each new name, count and ship date is another one, so that an event names its request. */
function choosePetRequest ({ object, left, orders }: Target, next: () => number): Request {
  const dice = Math.random()
  if (dice < 0.12) return { kind: 'read pet' }
  if (dice < 0.24) return { kind: 'read stock' }
  if (dice < 0.3) return { kind: 'list orders' }
  if (dice < 0.42) {
    const status = Math.random() < 0.5 ? { status: STATUSES[randomInt(3)]! } : {}
    return { kind: 'change pet', name: `${object}, name ${next()}`, ...status }
  }
  // Unique beyond the small numbers with which a pet is sold out often.
  if (dice < 0.5) return { kind: 'count', quantity: Math.random() < 0.6 ? randomInt(0, 4) : 4 + next() % 1_000_000 }
  if (dice < 0.76 || orders.length === 0) {
    const order = new Date(FIRST_SHIP_DATE + next()).toISOString()
    return { kind: 'place order', order, quantity: randomInt(1, 4), complete: Math.random() < 0.2 }
  }
  // Also orders that are gone.
  const order = orders[randomInt(orders.length)]!
  if (dice < 0.82) return { kind: 'read order', order }
  if (dice < 0.89) return { kind: 'complete order', order }
  if (dice < 0.98 || left > 20) return { kind: 'cancel order', order }
  return { kind: 'delete pet' }
}

function chooseCategoryRequest ({ object, left }: Target, number: number): Request {
  const dice = Math.random()
  if (dice < 0.4) return { kind: 'read category' }
  return dice < 0.98 || left > 20
    ? { kind: 'change category', name: `${object}, name ${number}` }
    : { kind: 'delete category' }
}
