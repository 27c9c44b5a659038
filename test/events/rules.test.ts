// Only on SQLite: calls a pure function.

import t from 'tap'
import { resolveStartPosition, type FeedState } from '../../src/events/rules.ts'

// No event yet; all stored; the first 30 deleted; all 50 deleted.
const EMPTY = { newest: 0, oldest: undefined }
const WHOLE = { newest: 50, oldest: 1 }
const CUT = { newest: 50, oldest: 31 }
const GONE = { newest: 50, oldest: undefined }

const CASES: Array<[string, FeedState, number | undefined, number | 'expired']> = [
  ['no event yet, no position', EMPTY, undefined, 0],
  ['no event yet, from the start', EMPTY, 0, 0],
  ['no event yet, beyond the newest', EMPTY, 7, 0],
  ['whole, no position', WHOLE, undefined, 0],
  ['whole, from the start', WHOLE, 0, 0],
  ['whole, in the middle', WHOLE, 20, 20],
  ['whole, at the end', WHOLE, 50, 50],
  ['whole, beyond the newest', WHOLE, 51, 50],
  ['cut, no position: from the oldest stored', CUT, undefined, 30],
  ['cut, just before the oldest stored', CUT, 30, 30],
  ['cut, one too early', CUT, 29, 'expired'],
  ['cut, from the start', CUT, 0, 'expired'],
  ['cut, in the middle', CUT, 40, 40],
  ['all deleted, no position', GONE, undefined, 50],
  ['all deleted, one too early', GONE, 49, 'expired'],
  ['all deleted, at the end', GONE, 50, 50]
]

t.test('a client starts at its position while the events after it are stored', async (t) => {
  for (const [name, state, after, expected] of CASES) t.equal(resolveStartPosition(state, after), expected, name)
})
