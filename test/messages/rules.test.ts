// Only on SQLite: calls a pure function.

import t from 'tap'
import { nextMessageStatus, type MessageProgress, type DeliveryOutcome } from '../../src/messages/rules.ts'

/** Rows of `[status, pending deliveries, outcome, next status, pending deliveries after it]`. */
const TABLE: Array<[MessageProgress['status'], number, DeliveryOutcome, MessageProgress['status'], number]> = [
  ['queued', 1, 'attempted', 'processing', 1],
  ['queued', 2, 'attempted', 'processing', 2],
  ['processing', 2, 'attempted', 'processing', 2],
  ['processing', 2, 'accepted', 'processing', 1],
  ['processing', 1, 'accepted', 'delivered', 0],
  ['queued', 2, 'accepted', 'processing', 1],
  ['processing', 2, 'failed', 'failed', 1],
  ['processing', 1, 'failed', 'failed', 0],
  ['queued', 1, 'failed', 'failed', 0],
  ['failed', 1, 'accepted', 'failed', 0],
  ['failed', 1, 'attempted', 'failed', 1],
  ['failed', 1, 'failed', 'failed', 0],
  ['failed', 1, 'dropped', 'failed', 0],
  ['queued', 2, 'dropped', 'queued', 1],
  ['queued', 1, 'dropped', 'delivered', 0],
  ['processing', 2, 'dropped', 'processing', 1],
  ['processing', 1, 'dropped', 'delivered', 0]
]

t.test('the outcomes of deliveries determine the status of their message', async (t) => {
  for (const [status, waiting, outcome, nextStatus, left] of TABLE) {
    const next = nextMessageStatus({ status, waiting }, outcome)
    t.same(next, { status: nextStatus, waiting: left }, `${status}, ${waiting} pending: ${outcome}`)
  }
})
