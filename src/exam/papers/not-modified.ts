import type { Pet } from '../../client/client.ts'
import type { TaskAnswer } from '../client-process.ts'
import { definePaper, type Finding } from '../paper.ts'
import { fieldOf, isSame, requestsOf, shown } from '../recorded-requests.ts'
import { addPets } from './stock.ts'

interface Read { when: string, pet: Pet, answer: TaskAnswer }

export const notModified = definePaper<{ keyId: number, reads: Read[] }>({
  name: 'not-modified',
  goodClient: 'reads a record again with If-None-Match, and uses what it has when the service responds 304',
  async sit ({ store, admit }) {
    const client = await admit()
    const [pet] = await addPets(store, 1)
    const petId = pet!.id
    const refresh = async (when: string, pet: Pet): Promise<Read> =>
      ({ when, pet, answer: await client.ask('refreshPet', { petId }) })
    const reads = [await refresh('the first time', pet!), await refresh('the second time', pet!)]
    const changed = await store.updatePet(petId, { name: 'Max' })
    reads.push(await refresh('after a change', changed))
    return { keyId: client.keyId, reads }
  },
  judge ({ keyId, reads }, journal) {
    const requests = requestsOf(journal, { keyId })
    const findings: Finding[] = reads.flatMap(({ when, pet, answer }) => {
      if (answer.ok && isSame(answer.result, pet)) return []
      const got = answer.ok ? shown(answer.result) : answer.error.text
      return [{ text: `When the client read the pet ${when}, it had ${got}; the store has ${shown(pet)}`, requests }]
    })
    if (!requests.some(({ status }) => status === 304)) {
      const isConditional = requests.some((request) => fieldOf(request, 'if-none-match') !== undefined)
      const reason = isConditional ? 'If-None-Match had another ETag' : 'no request had If-None-Match'
      findings.push({ text: `The unchanged pet was transferred again: ${reason}.`, requests })
    }
    return findings
  }
})
