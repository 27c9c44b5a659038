import { PetstoreError, type Client, type FaultEffect, type WebhookAttempt } from '../../client/client.ts'
import { ClientFailed } from '../client-process.ts'
import { definePaper, type Finding } from '../paper.ts'
import { shown } from '../recorded-requests.ts'
import { waitFor } from '../room.ts'

/** Nothing listens here. The webhook is off until the client has an address. */
const NOWHERE = 'http://127.0.0.1:9/'

/** Longer than the time for which an old secret signs, too. */
const OVERLAP_S = 25 * 3_600

/** Attempts that the service makes here. The first can be one that the client must refuse. */
const ATTEMPTS = 3

interface Case {
  what: string
  effect?: FaultEffect
  /** The client must refuse the first request. */
  isForged?: boolean
  /** Attempts that the service needs, although the client accepts the first one. */
  attempts?: number
}

const FIRST_CASES: Case[] = [
  { what: 'was signed' },
  { what: 'was sent twice', effect: { type: 'corrupt', how: 'duplicate' } },
  { what: 'was sent again, because the response was lost', effect: { type: 'lose_answer' }, attempts: 2 },
  { what: 'had a bad signature at first', effect: { type: 'corrupt', how: 'bad_signature' }, isForged: true },
  { what: 'had an old timestamp at first', effect: { type: 'corrupt', how: 'old_timestamp' }, isForged: true }
]

/** An event and the requests that the service has sent for it. */
interface Sent {
  what: string
  eventId: number
  isForged: boolean
  attempts: WebhookAttempt[]
}

export const webhook = definePaper<{ sent: Sent[], received: unknown }>({
  name: 'webhook',
  goodClient: 'refuses a bad signature and an old timestamp, takes an event once however often and in which order it ' +
    'comes, and survives a rotated secret',
  async sit ({ store, admit }) {
    const client = await admit()
    const created = await store.createWebhook({ url: NOWHERE, events: ['category.created'], enabled: false })
    const started = await client.ask('receiveWebhooks', { secret: created.secret })
    const url = started.ok ? (started.result as { url?: unknown } | null)?.url : undefined
    if (typeof url !== 'string') throw new ClientFailed(`The client did not start a receiver: ${shown(started)}`)
    await store.updateWebhook(created.id, { url, enabled: true }).catch((error: unknown) => {
      if (!(error instanceof PetstoreError) || error.status !== 400) throw error
      throw new ClientFailed(`The service refuses the address of the receiver: ${error.message}`)
    })
    const send = async (test: Case): Promise<Sent> => await sendEvent(store, created.id, test)

    const sent: Sent[] = []
    for (const test of FIRST_CASES) sent.push(await send(test))
    // The first of them waits until the second was sent.
    await store.createFault({ operation: 'webhook', effect: { type: 'reorder' } })
    const early = await newEvent(store)
    const late = await send({ what: 'came before an older one' })
    sent.push(late, await deliver(store, created.id, early, { what: 'came after a newer one' }))

    const { secret } = await store.rotateWebhookSecret(created.id)
    sent.push(await send({ what: 'was signed with the old and the new secret' }))
    await client.ask('changeSecret', { secret })
    sent.push(await send({ what: 'was signed with both, after the client knew the new one' }))
    await store.advanceClock({ seconds: OVERLAP_S })
    sent.push(await send({ what: 'was signed with the new secret alone' }))
    const answer = await client.ask('receivedEvents')
    return { sent, received: answer.ok ? answer.result : undefined }
  },
  judge ({ sent, received }) {
    if (!Array.isArray(received)) return [{ text: `The result is no list of ids of events: ${shown(received)}` }]
    const events = new Set<unknown>(sent.map(({ eventId }) => eventId))
    const others = received.filter((id) => !events.has(id)) as unknown[]
    return [
      ...sent.flatMap((event) => judgeEvent(event, received.filter((id) => id === event.eventId).length)),
      ...others.length === 0 ? [] : [{ text: `The client took events that were not sent: ${shown(others)}` }]
    ]
  }
})

/** @param times how often the client took the event */
function judgeEvent ({ what, eventId, isForged, attempts }: Sent, times: number): Finding[] {
  const [first] = attempts
  const name = `Event ${eventId}, which ${what},`
  if (isForged && isAccepted(first)) {
    return [{ text: `${name} was accepted at its first attempt with ${first!.status}.` }]
  }
  const last = attempts.at(-1)
  if (!isAccepted(last)) {
    const answer = last === undefined ? 'was not sent' : `was refused: ${last.status ?? last.error ?? ''}`
    return [{ text: `${name} ${answer}.` }]
  }
  return times === 1 ? [] : [{ text: `${name} was ${times === 0 ? 'not taken' : `taken ${times} times`}.` }]
}

function isAccepted (attempt: WebhookAttempt | undefined): boolean {
  return attempt?.status !== undefined && attempt.status >= 200 && attempt.status < 300
}

/** Makes an event with a fault for its first request, and waits until it is delivered. */
async function sendEvent (store: Client, webhookId: number, test: Case): Promise<Sent> {
  if (test.effect !== undefined) await store.createFault({ operation: 'webhook', effect: test.effect })
  return await deliver(store, webhookId, await newEvent(store), test)
}

/** Makes an event, and returns its id. */
async function newEvent (store: Client): Promise<number> {
  const { response } = await store.listEvents({ limit: 1 }).withResponse()
  const newest = Number(response.headers.get('event-id'))
  const { id } = await store.createCategory({ name: 'Dogs' })
  const events = await store.listEvents({ after: newest, limit: 100 })
  return events.find((event) => event.type === 'category.created' && event.data.category.id === id)!.id
}

/** Waits until the client has accepted an event, or the service has tried often enough. */
async function deliver (
  store: Client, webhookId: number, eventId: number, { what, isForged = false, attempts: needed = 1 }: Case
): Promise<Sent> {
  for (let count = 1; ; count++) {
    const attempts = await waitFor(`attempt ${count} to deliver event ${eventId}`, async () => {
      const all = await store.listWebhookAttempts(webhookId, { eventId, limit: 100 })
      return all.length >= count ? all.reverse() : undefined
    })
    const last = attempts.at(-1)!
    if (last.status === 410) {
      throw new ClientFailed(`The client responded 410 to event ${eventId}, which ${what}: that disables its webhook.`)
    }
    const { at, nextTryAt } = last
    const isOver = nextTryAt === undefined || attempts.length >= ATTEMPTS
    if (isOver || (isAccepted(last) && attempts.length >= needed)) return { what, eventId, isForged, attempts }
    await store.advanceClock({ seconds: Math.ceil((Date.parse(nextTryAt) - Date.parse(at)) / 1_000) })
  }
}
