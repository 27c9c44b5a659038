import t from 'tap'
import { resolveStartPosition } from '../../src/events/rules.ts'

// Feeds: nothing yet; everything held; the first 30 removed; all 50 removed.
const EMPTY = { newest: 0, oldest: undefined }
const WHOLE = { newest: 50, oldest: 1 }
const CUT = { newest: 50, oldest: 31 }
const GONE = { newest: 50, oldest: undefined }

const CASES: Array<[string, { newest: number, oldest: number | undefined }, number | undefined, number | 'expired']> = [
  ['nothing yet, no position', EMPTY, undefined, 0],
  ['nothing yet, from the start', EMPTY, 0, 0],
  ['nothing yet, beyond', EMPTY, 7, 0],
  ['whole, no position', WHOLE, undefined, 0],
  ['whole, from the start', WHOLE, 0, 0],
  ['whole, in the middle', WHOLE, 20, 20],
  ['whole, at the end', WHOLE, 50, 50],
  ['whole, beyond', WHOLE, 51, 50],
  ['cut, no position: from the oldest held', CUT, undefined, 30],
  ['cut, just before the oldest held', CUT, 30, 30],
  ['cut, one too early', CUT, 29, 'expired'],
  ['cut, from the start', CUT, 0, 'expired'],
  ['cut, in the middle', CUT, 40, 40],
  ['all gone, no position', GONE, undefined, 50],
  ['all gone, one too early', GONE, 49, 'expired'],
  ['all gone, at the end', GONE, 50, 50]
]

t.test('a reader begins where it asked, as far as events are held', async (t) => {
  for (const [name, state, after, expected] of CASES) t.equal(resolveStartPosition(state, after), expected, name)
})
