// Only on SQLite: needs no database.

import { mock } from 'node:test'
import t, { type Test } from 'tap'
import { type Progress, startProgress } from '../../src/cli/progress-bar.ts'

interface BarInTerminal {
  bar: Progress
  elapse: (ms: number) => void
  written: () => unknown[]
}

/** Starts a bar of 40,000 pets in a terminal, whose clock and output the test has. */
function barInTerminal (t: Test): BarInTerminal {
  let now = 0
  const wasTerminal = process.stderr.isTTY
  process.stderr.isTTY = true
  mock.method(performance, 'now', () => now)
  const write = mock.method(process.stderr, 'write', () => true)
  t.teardown(() => {
    mock.restoreAll()
    process.stderr.isTTY = wasTerminal
  })
  const bar = startProgress('pets', 40_000)
  return {
    bar,
    elapse (ms) { now += ms },
    written () {
      const texts = write.mock.calls.map((call) => call.arguments[0])
      write.mock.resetCalls()
      return texts
    }
  }
}

t.test('the bar shows the share, the rate and the time left', async (t) => {
  const { bar, elapse, written } = barInTerminal(t)
  t.strictSame(written(), [`\r\x1b[K${'-'.repeat(24)} 0 of 40000 pets`])
  elapse(1_000)
  bar.update(10_000)
  t.strictSame(written(), [`\r\x1b[K${'='.repeat(6)}${'-'.repeat(18)} 10000 of 40000 pets, 10000/s, 3 s left`])
  elapse(3_000)
  bar.update(40_000)
  bar.stop()
  t.strictSame(written(), [`\r\x1b[K${'='.repeat(24)} 40000 of 40000 pets, 10000/s`, '\n'])
})

t.test('the bar is drawn at most every 100 ms, and at its end', async (t) => {
  const { bar, elapse, written } = barInTerminal(t)
  written()
  elapse(50)
  bar.update(10_000)
  t.strictSame(written(), [])
  bar.stop()
  t.strictSame(written(), [`\r\x1b[K${'='.repeat(6)}${'-'.repeat(18)} 10000 of 40000 pets, 200000/s, 1 s left`, '\n'])
})
