import { judgeTheRest, parse, requestsTo } from '../findings.js'
import { addPets } from '../stock.js'

/** Less than the task needs, and a window that an agent does not fill by thinking. */
const LIMITS = { requests: 5, windowSeconds: 30, per: 'key' }

/** How much earlier than asked a request may come, in ms: timers and clocks are rounded. */
const MARGIN_MS = 50

export const surviveALimit = {
  name: 'survive-a-limit',
  goodAgent: 'finishes although the service limits its requests, and repeats none before the time of Retry-After',
  words: () => 'Please order one unit of each pet that is available, as samples for a fair.',
  async setUp (store) {
    const pets = await addPets(store, [
      ['Rex', 'Dogs', 8], ['Luna', 'Cats', 10], ['Coco', 'Parrots', 5], ['Nemo', 'Fish', 40], ['Milo', 'Dogs', 0],
      ['Bella', 'Cats', 3], ['Kiwi', 'Parrots', 6], ['Bruno', 'Dogs', 7]
    ])
    return { available: pets.filter(({ quantity }) => quantity > 0) }
  },
  async spring (store) {
    await store.putLimits(LIMITS)
  },
  judge ({ facts: { available }, ...evidence }) {
    const { diff, requests } = evidence
    const isSample = ({ type, petId, quantity }) =>
      type === 'order' && quantity === 1 && available.some(({ id }) => id === petId)
    const findings = judgeTheRest(evidence, (what, row) => what === 'created' && isSample(row))
    const early = repeatedEarly(requests)
    if (early.length > 0) {
      const [{ pause, asked }] = early
      const text = `The agent repeated ${early.length} refused requests too early, the first one after ${pause} ms; ` +
        `Retry-After asked for ${asked} ms.`
      findings.push({ text, requests: [...new Set(early.flatMap(({ refused, request }) => [refused, request]))] })
    }
    const counts = available.map(({ id, name }) =>
      ({ id, name, count: diff.created.filter((row) => isSample(row) && row.petId === id).length }))
    const wrong = counts.filter(({ count }) => count !== 1)
    if (wrong.length > 0) {
      const text = 'The agent was asked for one sample of each available pet; it ordered ' +
        `${wrong.map(({ id, name, count }) => `${count} of pet ${id} (${name})`).join(', ')}.`
      const isAboutOne = ({ body = '{}' }) => wrong.some(({ id }) => parse(body).petId === id)
      findings.push({ text, requests: requestsTo(requests, 'placeOrder').filter(isAboutOne) })
    }
    return findings
  }
}

/**
 * Returns the requests that repeat a refused one before the time of its Retry-After. Another request may come soon
 * after a refusal, because an agent can send several at the same time; the same one is sent again only by an agent that
 * knows of the refusal.
 */
function repeatedEarly (requests) {
  const refusals = new Map()
  return requests.flatMap((request) => {
    const { method, path, body, status, at, answerFields = [] } = request
    const content = JSON.stringify([method, path, body])
    const before = refusals.get(content)
    const asked = answerFields.find(({ name }) => name.toLowerCase() === 'retry-after')
    if (status === 429) refusals.set(content, { refused: request, asked: Number(asked?.value) * 1000 })
    else refusals.delete(content)
    if (before === undefined) return []
    const pause = Date.parse(at) - Date.parse(before.refused.at)
    return pause < before.asked - MARGIN_MS ? [{ ...before, request, pause }] : []
  })
}
