import type { Client, Reply } from '../client.ts'
import type { Report } from '../report.ts'
import type { Feed, Poll } from './feed.ts'
import { textOf } from './feed.ts'
import { READS, type Answer, type Event, type Operation, type Request } from './operation.ts'

/** A request as a client decides about it, before it is sent. */
export type Plan = Pick<Operation, 'object' | 'request' | 'ifMatch' | 'key'>

/** Records requests and answers, and replaces the ids that the service chose by the clients' labels. */
export interface Recorder {
  history: Operation[]
  /** Sends a request and records it. @returns the answer, or `undefined` if the outcome is unknown */
  send: (client: number, through: Client, plan: Plan) => Promise<Answer | undefined>
  /** Reads a part of the feed and records it. @returns the id of the newest event that it found */
  poll: (through: Client, after: number, limit: number) => Promise<number>
  /** Reads the whole feed, and translates everything that clients read of it before. */
  readFeed: (through: Client) => Promise<Feed>
  /** Returns the id that the service chose for a label, if a client knows it. */
  idOf: (label: string) => Id | undefined
}

type Id = number | string

interface RawEvent { id: number, type: string, data: Record<string, Record<string, unknown>> }

interface RawPoll extends Omit<Poll, 'found'> { events: RawEvent[] }

/** The label of the category that all pets belong to. */
export const CATEGORY_OF_PETS = 'category of all pets'

export function createRecorder (report: Report): Recorder {
  const history: Operation[] = []
  const polls: RawPoll[] = []
  const ids = new Map<string, Id>()
  const labels = new Map<string, string>()
  const firstAnswers = new Map<string, Reply>()

  /** Notes that a label and an id belong to each other: a label with two ids was created twice. */
  function identify (kind: string, label: string, id: unknown): void {
    const key = `${kind} ${String(id)}`
    const [knownId, knownLabel] = [ids.get(label), labels.get(key)]
    if (knownId !== undefined && knownId !== id) {
      report.violations.push(`${label} was created twice, as ${kind} ${knownId} and ${String(id)}`)
    }
    if (knownLabel !== undefined && knownLabel !== label) {
      report.violations.push(`${key} is both ${knownLabel} and ${label}`)
    }
    ids.set(label, id as Id)
    labels.set(key, label)
  }

  /** Compares the successes of a key, which must be one answer and its replays. */
  function compareReplays (key: string, reply: Reply): void {
    if (reply.status >= 300) return
    const first = firstAnswers.get(key)
    if (first === undefined) {
      firstAnswers.set(key, reply)
      return
    }
    const [a, b] = [first, reply].map(({ status, text, headers: { etag, location } }) =>
      [status, text, etag ?? '', location ?? ''].join(' '))
    if (a !== b) report.violations.push(`requests with the Idempotency-Key ${key} were answered ${a} and ${b}`)
    const fresh = [first, reply].filter(({ headers }) => headers['idempotency-replayed'] === undefined)
    if (fresh.length > 1) report.violations.push(`a request with the Idempotency-Key ${key} was executed twice`)
    if (fresh[0] === reply) firstAnswers.set(key, reply)
  }

  function eventOf ({ id, type, data }: RawEvent): Event {
    const { pet, inventory, order, category, message } = data
    const petId = pet?.['id'] ?? order?.['petId'] ?? inventory?.['petId']
    const [kind, own] = petId !== undefined
      ? ['pet', petId]
      : category !== undefined ? ['category', category['id']] : ['message', message?.['id']]
    if (type === 'pet.created') identify('pet', String(pet!['name']), petId)
    if (type === 'category.created') identify('category', String(category!['name']), own)
    if (message !== undefined) identify('message', String(message['message']), own)
    if (order !== undefined) identify('order', String(order['shipDate']), order['id'])
    const translated = Object.fromEntries(Object.entries(data).map(([name, value]) =>
      [name, value instanceof Object ? withoutIds(value as Members) : value]))
    return { id, object: labels.get(`${kind} ${String(own)}`) ?? `${kind} ${String(own)}`, type, data: translated }
  }

  return {
    history,
    idOf: (label) => ids.get(label),

    async send (client, through, { object, request, ifMatch, key }) {
      const { method, path, body } = callOf(request, (label = object) => ids.get(label))
      const headers = {
        ...ifMatch === undefined ? {} : { 'if-match': ifMatch },
        ...key === undefined ? {} : { 'idempotency-key': key }
      }
      const call = performance.now()
      const reply = await through.send({ method, path, body, headers })
      const end = performance.now()
      const isRead = READS.has(request.kind)
      const isUnknown = reply.status === 0 || reply.status === 503
      // A refused key says that another request is in flight, and nothing about the object.
      const isSilent = reply.body?.code === 'idempotency_key_in_use'
      if (isSilent || (isUnknown && isRead)) return undefined
      const operation: Operation = {
        client,
        object,
        request,
        call,
        return: isUnknown ? Infinity : end,
        ...ifMatch === undefined ? {} : { ifMatch },
        ...key === undefined ? {} : { key }
      }
      history.push(operation)
      if (isUnknown) return undefined
      if (key !== undefined) compareReplays(key, reply)
      if (reply.status === 201) identify(kindOf(request), labelOf(object, request), reply.body.id)
      operation.answer = answerOf(request, reply)
      return operation.answer
    },

    async poll (through, after, limit) {
      const call = performance.now()
      const { status, body, headers } = await through.send({
        method: 'GET', path: `/events?after=${after}&limit=${limit}`
      })
      if (status !== 200) return after
      const newest = Number(headers['event-id'])
      polls.push({ call, return: performance.now(), after, limit, newest, events: body })
      return body.at(-1)?.id ?? after
    },

    async readFeed (through) {
      const raw: RawEvent[] = []
      for (let after = 0; ;) {
        const { status, body, text } = await through.send({ method: 'GET', path: `/events?after=${after}&limit=100` })
        if (status !== 200) throw new Error(`the feed is answered ${status} ${text}`)
        if (body.length === 0) break
        raw.push(...body)
        after = body.at(-1).id
      }
      const events = raw.map(eventOf)
      return {
        events,
        polls: polls.map(({ events, ...poll }) =>
          ({ ...poll, found: events.map((event) => ({ id: event.id, text: textOf(eventOf(event)) })) }))
      }
    }
  }
}

function kindOf ({ kind }: Request): string {
  return kind.split(' ').at(-1)!
}

/** Returns the label of the record that a request creates. */
function labelOf (object: string, request: Request): string {
  return request.kind === 'place order' ? request.order : object
}

interface HttpCall { method: string, path: string, body?: unknown }

/** @param idOf returns the id of a label, or of the object itself */
function callOf (request: Request, idOf: (label?: string) => Id | undefined): HttpCall {
  const id = idOf()
  switch (request.kind) {
    case 'create pet': {
      return { method: 'POST', path: '/pets', body: { name: request.name, categoryId: idOf(CATEGORY_OF_PETS) } }
    }
    case 'read pet': return { method: 'GET', path: `/pets?id=${id}` }
    case 'read stock': return { method: 'GET', path: `/inventory/${id}` }
    case 'list orders': return { method: 'GET', path: `/store/orders?petId=${id}&limit=100` }
    case 'delete pet': return { method: 'DELETE', path: `/pets/${id}` }
    case 'change pet': {
      const { kind, ...patch } = request
      return { method: 'PATCH', path: `/pets/${id}`, body: patch }
    }
    case 'count': return { method: 'PATCH', path: `/inventory/${id}`, body: { quantity: request.quantity } }
    case 'place order': {
      const { order, quantity, complete } = request
      return { method: 'POST', path: '/store/orders', body: { petId: id, quantity, shipDate: order, complete } }
    }
    case 'read order': return { method: 'GET', path: `/store/orders/${idOf(request.order)}` }
    case 'complete order':
      return { method: 'PATCH', path: `/store/orders/${idOf(request.order)}`, body: { complete: true } }
    case 'cancel order': return { method: 'DELETE', path: `/store/orders/${idOf(request.order)}` }
    case 'create category': return { method: 'POST', path: '/categories', body: { name: request.name } }
    case 'read category': return { method: 'GET', path: `/categories/${id}` }
    case 'change category': return { method: 'PATCH', path: `/categories/${id}`, body: { name: request.name } }
    case 'delete category': return { method: 'DELETE', path: `/categories/${id}` }
    case 'create message': return { method: 'POST', path: '/messages', body: { message: request.message } }
    case 'read message': return { method: 'GET', path: `/messages/${id}` }
  }
}

function answerOf ({ kind }: Request, { status, body, headers }: Reply): Answer {
  if (status >= 300) return { status, code: body?.code }
  const replayed = headers['idempotency-replayed'] === 'true' ? { replayed: true } : {}
  if (kind === 'list orders') {
    const orders = (body as Array<Record<string, unknown>>).map(withoutIds)
    return { status, body: orders.sort((a, b) => String(a['shipDate']) < String(b['shipDate']) ? -1 : 1) }
  }
  const record = kind === 'read pet' ? body[0] ?? null : body
  const etag = headers.etag === undefined || record === null ? {} : { etag: headers.etag }
  const shown = record === undefined ? {} : { body: record === null ? null : withoutIds(record) }
  return { status, ...shown, ...etag, ...replayed }
}

type Members = Record<string, unknown>

/** Returns the members of a record that a model predicts. */
function withoutIds ({ id, petId, categoryId, createdAt, ...members }: Members): Members {
  return members
}
