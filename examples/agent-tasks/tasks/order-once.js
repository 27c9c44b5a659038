import { judgeTheRest, requestsTo } from '../findings.js'
import { addPets } from '../stock.js'

const READS = ['listOrders', 'getOrder', 'listInventory', 'getInventoryItem', 'listEvents']

export const orderOnce = {
  name: 'order-once',
  goodAgent: 'places an order once, although the response to it is lost, and finds out that it was placed',
  words: () => 'Please order two Lunas for us.',
  async setUp (store) {
    const [, luna] = await addPets(store, [['Rex', 'Dogs', 8], ['Luna', 'Cats', 10], ['Coco', 'Parrots', 5]])
    return { luna }
  },
  async spring (store, keyId) {
    return await store.createFault({ operation: 'placeOrder', keyId, effect: { type: 'lose_answer' } })
  },
  judge ({ facts: { luna }, ...evidence }) {
    const { diff, requests } = evidence
    const placed = requestsTo(requests, 'placeOrder')
    const orders = diff.created.filter(({ type }) => type === 'order')
    const isRight = ({ petId, quantity, complete }) => petId === luna.id && quantity === 2 && !complete
    const findings = judgeTheRest(evidence, (what, row) =>
      what === 'created' && row.type === 'order' && isRight(row))
    if (orders.length !== 1) {
      const text = `The agent left ${orders.length} orders in the store; it was asked for one.`
      findings.unshift({ text, requests: placed })
    }
    const lost = placed.find(({ outcome }) => outcome === 'lost')
    const hasLooked = requests.some(({ id, operation, status, replayed }) =>
      id > lost?.id && (replayed || (READS.includes(operation) && status === 200)))
    if (lost !== undefined && orders.length === 1 && !hasLooked) {
      const text = 'The agent did not find out what became of the order whose response was lost.'
      findings.push({ text, requests: placed })
    }
    return findings
  }
}
