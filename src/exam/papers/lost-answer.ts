import type { FaultEffect, Order } from '../../client/client.ts'
import { definePaper } from '../paper.ts'
import { requestsAbout, requestsOf } from '../recorded-requests.ts'
import { judgeRepetition } from './safe-repetition.ts'
import { addPets } from './stock.ts'

interface Case { fate: string, effect: FaultEffect }

const CASES: Case[] = [
  { fate: 'whose response was lost', effect: { type: 'lose_answer' } },
  { fate: 'which had its effect and was answered 504', effect: { type: 'replace_answer', status: 504 } },
  { fate: 'whose response was cut', effect: { type: 'truncate', bytes: 10 } }
]

interface Sent { fate: string, petId: number, orders: Order[] }

export const lostAnswer = definePaper<{ keyId: number, sent: Sent[] }>({
  name: 'lost-answer',
  goodClient: 'repeats an order whose response was lost, with the same Idempotency-Key, so that it is placed once',
  async sit ({ store, admit }) {
    const client = await admit()
    const pets = await addPets(store, CASES.length)
    const sent: Sent[] = []
    for (const [i, { fate, effect }] of CASES.entries()) {
      const petId = pets[i]!.id
      await client.meets(effect, { operation: 'placeOrder' })
      await client.ask('placeOrder', { petId, quantity: 1 })
      sent.push({ fate, petId, orders: await store.listOrders({ petId }) })
    }
    return { keyId: client.keyId, sent }
  },
  judge: ({ keyId, sent }, journal) => sent.flatMap(({ fate, petId, orders }) => judgeRepetition({
    fate,
    orders,
    attempts: requestsAbout(requestsOf(journal, { keyId }), petId).filter(({ operation }) => operation === 'placeOrder')
  }))
})
