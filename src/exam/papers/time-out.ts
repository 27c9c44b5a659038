import type { Order } from '../../client/client.ts'
import { ClientFailed } from '../client-process.ts'
import { GIVE_UP_MS } from '../margins.ts'
import { definePaper } from '../paper.ts'
import { nameOf, requestsOf } from '../recorded-requests.ts'
import { judgeRepetition } from './safe-repetition.ts'
import { addPets } from './stock.ts'

/** Longer than any client may wait. */
const SILENCE_MS = 60_000

export const timeOut = definePaper<{ keyId: number, isLate: boolean, orders: Order[] }>({
  name: 'time-out',
  goodClient: `gives up a silent response within ${GIVE_UP_MS / 1_000} s, and repeats the order safely`,
  async sit ({ store, admit }) {
    const client = await admit()
    const [pet] = await addPets(store, 1)
    const petId = pet!.id
    await client.meets({ type: 'delay', ms: SILENCE_MS }, { operation: 'placeOrder' })
    const placed = client.ask('placeOrder', { petId, quantity: 1 }, GIVE_UP_MS)
    const isLate = await placed.then(() => false, (error: unknown) => {
      if (error instanceof ClientFailed && error.isLate) return true
      throw error
    })
    return { keyId: client.keyId, isLate, orders: await store.listOrders({ petId }) }
  },
  judge ({ keyId, isLate, orders }, journal) {
    const attempts = requestsOf(journal, { keyId }).filter(({ operation }) => operation === 'placeOrder')
    const [first] = attempts
    if (isLate && first !== undefined && attempts.length === 1) {
      const text = `The client still waited for the response to ${nameOf(first)} after ${GIVE_UP_MS / 1_000} s.`
      return [{ text, requests: attempts }]
    }
    return [
      ...isLate ? [{ text: `The client had no result after ${GIVE_UP_MS / 1_000} s.`, requests: attempts }] : [],
      ...judgeRepetition({ fate: 'which was silent', attempts, orders })
    ]
  }
})
