import type { FaultEffect, Pet } from '../../client/client.ts'
import type { TaskAnswer } from '../client-process.ts'
import { MAX_ATTEMPTS } from '../margins.ts'
import { definePaper } from '../paper.ts'
import { isSame, requestsAbout, requestsOf, shown } from '../recorded-requests.ts'
import { addPets } from './stock.ts'

interface Case { growth: string, effect: FaultEffect, status?: string }

const CASES: Case[] = [
  // The fault puts this value in place of the status.
  { growth: 'the status `unknown`', effect: { type: 'corrupt', how: 'unknown_enum' }, status: 'unknown' },
  { growth: 'one more member', effect: { type: 'corrupt', how: 'unknown_field' } }
]

interface Got { keyId: number, growth: string, sent: Pet, answer: TaskAnswer }

export const growth = definePaper<Got[]>({
  name: 'growth',
  goodClient: 'passes on a value that its list of values does not have, and is not disturbed by one more member',
  async sit ({ store, admit }) {
    const pets = await addPets(store, CASES.length)
    const all: Got[] = []
    for (const [i, { growth, effect, status }] of CASES.entries()) {
      const pet = pets[i]!
      const client = await admit()
      // A client that does not accept it must not find another response when it repeats its request.
      await client.meets(effect, { times: MAX_ATTEMPTS })
      const answer = await client.ask('getPet', { petId: pet.id })
      const sent = { ...pet, ...status === undefined ? {} : { status } } as Pet
      all.push({ keyId: client.keyId, growth, sent, answer })
    }
    return all
  },
  judge: (all, journal) => all.flatMap(({ keyId, growth, sent, answer }) => {
    const requests = requestsAbout(requestsOf(journal, { keyId }), sent.id)
    if (!answer.ok) {
      return [{ text: `A pet with ${growth} was an error for the client: ${answer.error.text}`, requests }]
    }
    if (isSame(answer.result, sent)) return []
    return [{ text: `A pet with ${growth} became ${shown(answer.result)}; the service sent ${shown(sent)}`, requests }]
  })
})
