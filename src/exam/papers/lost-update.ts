import type { Pet } from '../../client/client.ts'
import type { TaskAnswer } from '../client-process.ts'
import { HOLD_MS } from '../margins.ts'
import { definePaper, Undecided, type Finding } from '../paper.ts'
import { fieldOf, nameOf, requestsOf } from '../recorded-requests.ts'
import { alongside } from './alongside.ts'
import { addPets } from './stock.ts'

const OURS = ' the first'
const THEIRS = ' of York'

interface Evidence { keyId: number, answer: TaskAnswer, before: Pet, after: Pet }

export const lostUpdate = definePaper<Evidence>({
  name: 'lost-update',
  goodClient: 'changes a record with If-Match, and after 412 reads it again and applies the change to what it is now',
  async sit ({ store, admit, attempt }) {
    const client = await admit()
    const [before] = await addPets(store, 1)
    const petId = before!.id
    // The first response, which is the state that the client will change, is held back while the exam changes it.
    await client.meets({ type: 'delay', ms: HOLD_MS * 2 ** (attempt - 1) })
    const append = client.ask('appendToName', { petId, text: THEIRS })
    const [answer] = await alongside(append, async (signal) => {
      for await (const { type } of store.followEvents({ signal })) {
        if (type !== 'fault.hit') continue
        await store.updatePet(petId, { name: before!.name + OURS })
        return
      }
    })
    return { keyId: client.keyId, answer, before: before!, after: await store.getPet(petId) }
  },
  judge ({ keyId, answer, before, after }, journal) {
    const requests = requestsOf(journal, { keyId })
    const write = requests.find(({ method, status }) => method === 'PATCH' && status === 200)
    const change = journal.find((request) => request.keyId !== keyId && request.body?.includes(OURS) === true)
    if (requests.length === 0) return [{ text: 'The client did not read the pet.' }]
    if (change === undefined || (write !== undefined && write.id < change.id)) throw new Undecided()
    const findings: Finding[] = []
    const blind = requests.find((request) => request.method === 'PATCH' && fieldOf(request, 'if-match') === undefined)
    if (blind !== undefined) {
      findings.push({ text: `The change of ${nameOf(blind)} has no If-Match.`, requests })
    }
    if (!after.name.includes(OURS)) {
      const text = `The change of ${nameOf(change)} is lost: ${nameOf(write ?? change)} has overwritten it.`
      findings.push({ text, requests: [change, ...requests] })
    } else if (after.name !== before.name + OURS + THEIRS) {
      const reason = answer.ok ? '' : ` The client says: ${answer.error.text}`
      const text = `The name is "${after.name}"; with both changes it is "${before.name}${OURS}${THEIRS}".${reason}`
      findings.push({ text, requests: [change, ...requests] })
    }
    return findings
  }
})
