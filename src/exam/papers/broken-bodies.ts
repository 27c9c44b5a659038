import type { FaultEffect, Pet } from '../../client/client.ts'
import type { TaskAnswer } from '../client-process.ts'
import { definePaper } from '../paper.ts'
import { isSame, nameOf, requestsAbout, requestsOf, shown } from '../recorded-requests.ts'
import { addPets } from './stock.ts'

interface Case { defect: string, effect: FaultEffect }

const CASES: Case[] = [
  { defect: 'was cut', effect: { type: 'truncate', bytes: 10 } },
  { defect: 'was no JSON', effect: { type: 'corrupt', how: 'invalid_json' } },
  { defect: 'had a value of the wrong type', effect: { type: 'corrupt', how: 'wrong_type' } },
  { defect: 'lacked a required member', effect: { type: 'corrupt', how: 'missing_field' } }
]

interface Got { defect: string, pet: Pet, answer: TaskAnswer }

export const brokenBodies = definePaper<{ keyId: number, all: Got[] }>({
  name: 'broken-bodies',
  goodClient: 'never passes on a body that was cut, is no JSON, has a wrong type or lacks a member: it reports an ' +
    'error, or gets the record again',
  async sit ({ store, admit }) {
    const client = await admit()
    const pets = await addPets(store, CASES.length)
    const all: Got[] = []
    for (const [i, { defect, effect }] of CASES.entries()) {
      const pet = pets[i]!
      await client.meets(effect)
      all.push({ defect, pet, answer: await client.ask('getPet', { petId: pet.id }) })
    }
    return { keyId: client.keyId, all }
  },
  judge: ({ keyId, all }, journal) => all.flatMap(({ defect, pet, answer }) => {
    const requests = requestsAbout(requestsOf(journal, { keyId }), pet.id)
    const broken = requests.find(({ faultId }) => faultId !== undefined) ?? requests[0]
    if (broken === undefined) return [{ text: `The client did not ask for pet ${pet.id}.` }]
    if (!answer.ok || isSame(answer.result, pet)) return []
    const text = `The body of ${nameOf(broken)} ${defect}, and the client passed it on: ${shown(answer.result)}`
    return [{ text, requests }]
  })
})
