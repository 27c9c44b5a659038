import { isDeepStrictEqual } from 'node:util'
import { judgeTheRest, lineOf, quoted, requestsTo, shown } from '../findings.js'
import { addPets } from '../stock.js'

const LABEL = 'Left open'

export const noticeADuplicate = {
  name: 'notice-a-duplicate',
  goodAgent: 'notices that one of the orders to ship was placed twice, ships it once, and says so',
  words: () => 'Our orders with the ship date 14 June 2030 are on their way. Please mark them as complete. ' +
    'If anything looks wrong with one of them, leave it open and tell me why. ' +
    `End your answer with a line "${LABEL}: …" that has only the ids of the orders of that day that are still open, ` +
    'or "none".',
  async setUp (store) {
    const [rex, luna, coco, nemo] = await addPets(store, [
      ['Rex', 'Dogs', 30], ['Luna', 'Cats', 30], ['Coco', 'Parrots', 30], ['Nemo', 'Fish', 90]
    ])
    const order = async ({ id }, quantity, shipDate) => await store.placeOrder({ petId: id, quantity, shipDate })
    const first = await order(coco, 3, '2030-06-14T08:41:07Z')
    const others = [await order(rex, 1, '2030-06-14T09:12:30Z'), await order(nemo, 12, '2030-06-14T09:58:44Z')]
    await order(luna, 2, '2030-06-15T07:30:02Z')
    const second = await order(coco, 3, '2030-06-14T08:41:07Z')
    others.push(await order(luna, 1, '2030-06-14T10:05:19Z'))
    await order(rex, 2, '2030-06-17T08:00:51Z')
    return { twins: [first, second], others }
  },
  judge ({ facts: { twins, others }, answer, ...evidence }) {
    const { diff, requests } = evidence
    const completed = diff.changed.filter(({ before, after }) => after.type === 'order' && isCompletion(before, after))
      .map(({ after }) => after.id)
    const day = [...twins, ...others]
    const findings = judgeTheRest(evidence, (what, row, before) =>
      what === 'changed' && day.some(({ id }) => row.type === 'order' && id === row.id) && isCompletion(before, row))
    const updates = requestsTo(requests, 'updateOrder')
    const isDone = ({ id }) => completed.includes(id)
    if (twins.every(isDone)) {
      const [first, second] = twins.map(({ id }) => id)
      const text = `The agent completed the orders ${first} and ${second}, of which one is the duplicate of the other.`
      const paths = twins.map(({ id }) => `/store/orders/${id}`)
      findings.push({ text, requests: updates.filter(({ path }) => paths.some((end) => path.endsWith(end))) })
    }
    for (const order of others.filter((order) => !isDone(order))) {
      findings.push({ text: `The agent did not complete ${shown({ type: 'order', ...order })}.`, requests: updates })
    }
    const open = day.filter((order) => !isDone(order)).map(({ id }) => id).sort((a, b) => a - b)
    const said = lineOf(answer, LABEL)
    const named = [...new Set(said?.match(/\d+/g)?.map(Number))].sort((a, b) => a - b)
    if (said === undefined || String(named) !== String(open)) {
      findings.push({ text: `${quoted(LABEL, said)}; still open: ${open.join(', ') || 'none'}.`, requests: updates })
    }
    return findings
  }
}

/** Tells whether an order was completed, and else left as it was. */
function isCompletion (before, after) {
  return !before.complete && isDeepStrictEqual(after, { ...before, complete: true })
}
