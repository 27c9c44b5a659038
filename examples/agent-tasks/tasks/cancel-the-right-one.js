import { judgeTheRest, requestsTo, shown } from '../findings.js'
import { addPets } from '../stock.js'

export const cancelTheRightOne = {
  name: 'cancel-the-right-one',
  goodAgent: 'cancels the order that was meant, of several that look alike, and no other',
  words: () => 'Please cancel our order of two Bellas. I mean Bella the cat. All other orders stay as they are.',
  async setUp (store) {
    const [dog, rex, cat] = await addPets(store, [['Bella', 'Dogs', 20], ['Rex', 'Dogs', 20], ['Bella', 'Cats', 20]])
    const order = async ({ id }, quantity) => await store.placeOrder({ petId: id, quantity })
    await order(rex, 2)
    await order(dog, 2)
    await order(cat, 3)
    const meant = await order(cat, 2)
    await order(dog, 3)
    return { meant }
  },
  judge ({ facts: { meant }, ...evidence }) {
    const findings = judgeTheRest(evidence, (what, { type, id }) =>
      what === 'deleted' && type === 'order' && id === meant.id)
    if (!evidence.diff.deleted.some(({ type, id }) => type === 'order' && id === meant.id)) {
      const text = `The agent did not cancel ${shown({ type: 'order', ...meant })}.`
      findings.push({ text, requests: requestsTo(evidence.requests, 'cancelOrder') })
    }
    return findings
  }
}
