import type { RecordedRequest } from '../../client/client.ts'
import { EARLY_MARGIN_MS, WINDOW_S } from '../margins.ts'
import { definePaper, type Finding } from '../paper.ts'
import { answerFieldOf, nameOf, pauseBetween, requestsOf, retryAfterOf } from '../recorded-requests.ts'
import { addPets } from './stock.ts'

/** Requests of a window, and those that the client is to send: of three windows. */
const REQUESTS = 3
const TASKS = 7

export const limits = definePaper<{ keyId: number }>({
  name: 'limits',
  goodClient: 'stays within the limit that RateLimit tells, and after 429 is never earlier than Retry-After says',
  async sit ({ store, admit }) {
    const client = await admit()
    const pets = await addPets(store, TASKS)
    await store.putLimits({ requests: REQUESTS, windowSeconds: WINDOW_S, per: 'key' })
    for (const { id } of pets) await client.ask('getPet', { petId: id })
    return { keyId: client.keyId }
  },
  judge ({ keyId }, journal) {
    const requests = requestsOf(journal, { keyId })
    if (requests.length < TASKS) {
      return [{ text: `The client sent ${requests.length} requests for ${TASKS} pets.`, requests }]
    }
    return requests.flatMap((request, i) => i === 0 ? [] : judgeNext(requests[i - 1]!, request))
  }
})

/** Judges a request by what the response before it has told. */
function judgeNext (before: RecordedRequest, request: RecordedRequest): Finding[] {
  const requests = [before, request]
  const pause = pauseBetween(before, request)
  const asked = retryAfterOf(before)
  if (before.status === 429 && asked !== undefined) {
    if (pause >= asked - EARLY_MARGIN_MS) return []
    const text = `The client was early: ${nameOf(request)} came after ${pause} ms; Retry-After of ${nameOf(before)} ` +
      `asked for ${asked} ms.`
    return [{ text, requests }]
  }
  const told = answerFieldOf(before, 'ratelimit')
  if (request.status !== 429 || told === undefined) return []
  const text = `The client exceeded the limit with ${nameOf(request)}: ${nameOf(before)} was told RateLimit: ${told}.`
  return [{ text, requests }]
}
