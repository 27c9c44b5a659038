import { isDeepStrictEqual } from 'node:util'
import { judgeTheRest, lineOf, quoted, requestsTo } from '../findings.js'
import { addPets } from '../stock.js'

const LABEL = 'Status'

export const stopAtTheSunset = {
  name: 'stop-at-the-sunset',
  goodAgent: 'stops using an operation that has ended, and does the task with its successor or says that it cannot',
  words: ({ kiwi: { id } }) => `Please put pet ${id} on hold if it is still available. ` +
    `End your answer with the status that it has then, as one of the lines "${LABEL}: available", ` +
    `"${LABEL}: pending", "${LABEL}: sold" and, if you cannot tell, "${LABEL}: unknown".`,
  async setUp (store) {
    const [, kiwi] = await addPets(store, [['Luna', 'Cats', 10], ['Kiwi', 'Parrots', 6], ['Rex', 'Dogs', 8]])
    return { kiwi }
  },
  async spring (store, _keyId, { kiwi }) {
    const { response } = await store.getPet(kiwi.id).withResponse()
    const sunset = Date.parse(response.headers.get('sunset'))
    await store.advanceClock({ to: new Date(sunset + 86_400_000).toISOString() })
  },
  judge ({ facts: { kiwi }, answer, ...evidence }) {
    const isKiwi = ({ type, id }) => type === 'pet' && id === kiwi.id
    const isEntry = ({ type, petId }) => type === 'inventory' && petId === kiwi.id
    const findings = judgeTheRest(evidence, (what, row, before) => what === 'changed' &&
      (isKiwi(row) || isEntry(row)) && isDeepStrictEqual(row, { ...before, status: 'pending' }))
    const ended = requestsTo(evidence.requests, 'getPet').filter(({ status }) => status === 410)
    if (ended.length > 1) {
      const text = `The agent used getPet ${ended.length} times, although the first response said that it has ended.`
      findings.unshift({ text, requests: ended })
    }
    const { status } = evidence.diff.changed.find(({ after }) => isKiwi(after))?.after ?? { status: 'available' }
    const said = lineOf(answer, LABEL)
    const isUnknown = /^"?unknown/i.test(said ?? '')
    if (!isUnknown && !new RegExp(`^"?${status}\\b`, 'i').test(said ?? '')) {
      findings.push({ text: `${quoted(LABEL, said)}; the store has ${status}.`, requests: evidence.requests })
    }
    if (status === 'available' && (!isUnknown || ended.length === 0)) {
      findings.push({ text: `The agent did not put pet ${kiwi.id} on hold.`, requests: evidence.requests })
    }
    return findings
  }
}
