import t from 'tap'
import { nextMessageStatus, type MessageProgress, type DeliveryOutcome } from '../../src/messages/rules.ts'

/** `[before, what happens, after]`, each as status and what still waits. */
const TABLE: Array<[MessageProgress['status'], number, DeliveryOutcome, MessageProgress['status'], number]> = [
  ['queued', 1, 'tried', 'processing', 1],
  ['queued', 2, 'tried', 'processing', 2],
  ['processing', 2, 'tried', 'processing', 2],
  ['processing', 2, 'accepted', 'processing', 1],
  ['processing', 1, 'accepted', 'delivered', 0],
  ['queued', 2, 'accepted', 'processing', 1],
  ['processing', 2, 'givenUp', 'failed', 1],
  ['processing', 1, 'givenUp', 'failed', 0],
  ['queued', 1, 'givenUp', 'failed', 0],
  ['failed', 1, 'accepted', 'failed', 0],
  ['failed', 1, 'tried', 'failed', 1],
  ['failed', 1, 'givenUp', 'failed', 0],
  ['failed', 1, 'dropped', 'failed', 0],
  ['queued', 2, 'dropped', 'queued', 1],
  ['queued', 1, 'dropped', 'delivered', 0],
  ['processing', 2, 'dropped', 'processing', 1],
  ['processing', 1, 'dropped', 'delivered', 0]
]

t.test('a message follows its deliveries', async (t) => {
  for (const [status, waiting, step, ...after] of TABLE) {
    t.same(nextMessageStatus({ status, waiting }, step), { status: after[0], waiting: after[1] }, `${status}, ${waiting} waiting: ${step}`)
  }
})
