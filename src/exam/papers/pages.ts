import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '../../client/client.ts'
import type { TaskAnswer } from '../client-process.ts'
import { PAGE_DELAY_MS } from '../margins.ts'
import { definePaper, type Finding } from '../paper.ts'
import { answerFieldOf, nameOf, requestsOf, shown } from '../recorded-requests.ts'
import { alongside } from './alongside.ts'

/** More than two pages of the largest size. */
const PETS = 220

/** Of the pets, each so many goes while the client reads. */
const GOES = 4

/** Pause between two changes, in ms: many during each page. */
const CHANGE_MS = 10

interface Evidence {
  keyId: number
  answer: TaskAnswer
  /** Pets that are in the store all the time. */
  lasting: number[]
  /** All pets that are or were in the store. */
  ever: number[]
}

export const pages = definePaper<Evidence>({
  name: 'pages',
  goodClient: 'reads every record of a list once, from all pages, while others are created and deleted',
  async sit ({ store, admit }) {
    const client = await admit()
    const { id: categoryId } = await store.createCategory({ name: 'Dogs' })
    const create = async (): Promise<number> => (await store.createPet({ name: 'Rex', categoryId })).id
    const pets = (await Promise.all(Array.from({ length: PETS }, create))).sort((a, b) => a - b)
    const going = pets.filter((_, i) => i % GOES === 0)
    await client.meets({ type: 'delay', ms: PAGE_DELAY_MS }, { times: 1_000 })
    const [answer, added] = await alongside(client.ask('listPets'), async (signal) =>
      await changePets(store, categoryId, going, signal))
    return {
      keyId: client.keyId,
      answer,
      lasting: pets.filter((_, i) => i % GOES !== 0),
      ever: [...pets, ...added]
    }
  },
  judge ({ keyId, answer, lasting, ever }, journal) {
    const requests = requestsOf(journal, { keyId })
    if (!answer.ok) return [{ text: `The client could not list the pets: ${answer.error.text}`, requests }]
    const ids = answer.result
    if (!Array.isArray(ids)) return [{ text: `The result is no list of ids: ${shown(ids)}`, requests }]
    const found = new Set<unknown>(ids)
    const missing = lasting.filter((id) => !found.has(id))
    const strange = ids.filter((id) => !ever.includes(id as number))
    const findings: Finding[] = []
    if (missing.length > 0) {
      const last = requests.at(-1)
      const isUnfinished = last !== undefined && (answerFieldOf(last, 'link') ?? '').includes('rel="next"')
      const reason = isUnfinished ? ` The response to ${nameOf(last)} names a next page.` : ''
      const text = `The client misses ${missing.length} of ${lasting.length} pets, such as ${missing[0]}.${reason}`
      findings.push({ text, requests })
    }
    if (ids.length > found.size) {
      const twice = ids.find((id, i) => ids.indexOf(id) < i) as unknown
      const text = `The client has ids more than once: ${ids.length - found.size}, such as ${shown(twice)}.`
      findings.push({ text, requests })
    }
    if (strange.length > 0) {
      findings.push({ text: `The client has ids that no pet ever had, such as ${shown(strange[0])}.`, requests })
    }
    return findings
  }
})

/** Creates and deletes pets until a signal. Returns the ids of the new ones. */
async function changePets (
  store: Client, categoryId: number, going: number[], signal: AbortSignal
): Promise<number[]> {
  const added: number[] = []
  const left = [...going]
  while (!signal.aborted) {
    added.push((await store.createPet({ name: 'Rex', categoryId })).id)
    const id = left.pop()
    if (id !== undefined) await store.deletePet(id)
    await sleep(CHANGE_MS)
  }
  return added
}
