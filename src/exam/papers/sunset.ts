import type { Pet } from '../../client/client.ts'
import type { TaskAnswer } from '../client-process.ts'
import { definePaper, type Finding } from '../paper.ts'
import { isSame, nameOf, requestsOf, shown } from '../recorded-requests.ts'
import { addPets } from './stock.ts'

/** From the sunset until the exam reads the pet, in ms. */
const LATER_MS = 86_400_000

export const sunset = definePaper<{ keyId: number, pet: Pet, answer: TaskAnswer }>({
  name: 'sunset',
  goodClient: 'moves to the successor of an operation that has ended, or reports the end (410) and does not repeat it',
  async sit ({ store, admit }) {
    const client = await admit()
    const [pet] = await addPets(store, 1)
    const petId = pet!.id
    const { response } = await store.getPet(petId).withResponse()
    const sunset = Date.parse(response.headers.get('sunset')!)
    await store.advanceClock({ to: new Date(sunset + LATER_MS).toISOString() })
    return { keyId: client.keyId, pet: pet!, answer: await client.ask('getPet', { petId }) }
  },
  judge ({ keyId, pet, answer }, journal) {
    const requests = requestsOf(journal, { keyId })
    const [first, second] = requests.filter(({ status }) => status === 410)
    const findings: Finding[] = []
    if (second !== undefined) {
      findings.push({ text: `The client repeated ${nameOf(first!)}, although the operation has ended.`, requests })
    }
    if (answer.ok) {
      if (!isSame(answer.result, pet)) {
        findings.push({ text: `The client has ${shown(answer.result)}; the store has ${shown(pet)}`, requests })
      }
    } else if (answer.error.status !== 410 && answer.error.code !== 'operation_sunset') {
      findings.push({ text: `The error does not say that the operation has ended: ${shown(answer.error)}`, requests })
    }
    return findings
  }
})
