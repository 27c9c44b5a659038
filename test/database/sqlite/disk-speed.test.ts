// Only on SQLite: tests the connections to SQLite.

import t from 'tap'
import { DiskSpeed } from '../../../src/database/sqlite/disk-speed.ts'
import { setClockAhead } from '../../support/machine-clock.ts'

const SLOW = 2
const FAST = 0.1
const START_MS = 1_000_000

/** Returns a disk with a clock that the test moves. */
function newDisk (...waits: number[]): { disk: DiskSpeed, clock: { now: number } } {
  const clock = { now: START_MS }
  const disk = new DiskSpeed(() => clock.now)
  for (const wait of waits) disk.record(wait)
  return { disk, clock }
}

t.test('eight slow COMMITs make a disk slow', async (t) => {
  const { disk } = newDisk(...Array<number>(7).fill(SLOW))
  t.equal(disk.isSlow(), false)
  disk.record(SLOW)
  t.equal(disk.isSlow(), true)
})

t.test('a COMMIT that takes the processor is not slow', async (t) => {
  let [now, processor, asked] = [0, 0, 0]
  const disk = new DiskSpeed(() => now, () => {
    asked++
    return processor
  })
  const commit = (ms: number, ofProcessor: number): void => {
    disk.measure(() => {
      now += ms
      processor += ofProcessor
    })
  }
  for (let i = 0; i < 10; i++) commit(FAST, FAST)
  t.equal(asked, 0, 'the time of the processor is not asked for while COMMITs are short')
  for (let i = 0; i < 100; i++) commit(3, 2.9)
  t.equal(disk.isSlow(), false)
  for (let i = 0; i < 100; i++) commit(i % 2 === 0 ? 3 : FAST, 0.1)
  t.equal(disk.isSlow(), false, 'one that follows a short one counts as slow, and the short one as fast')
  for (let i = 0; i < 8; i++) commit(3, 1.9)
  t.equal(disk.isSlow(), true)
})

t.test('a disk with as many fast COMMITs as slow ones is fast', async (t) => {
  const { disk } = newDisk(...Array.from({ length: 100 }, (_, i) => i % 2 === 0 ? SLOW : FAST))
  t.equal(disk.isSlow(), false)
})

t.test('fast COMMITs do not outweigh the slow ones that follow', async (t) => {
  const { disk } = newDisk(...Array<number>(1_000).fill(FAST), ...Array<number>(8).fill(SLOW))
  t.equal(disk.isSlow(), true)
})

t.test('a slow disk is measured by one COMMIT every ten seconds', async (t) => {
  const { disk, clock } = newDisk(...Array<number>(8).fill(SLOW))
  clock.now += 9_999
  t.equal(disk.isSlow(), true)
  clock.now += 1
  t.equal(disk.isSlow(), false)
  t.equal(disk.isSlow(), true, 'the next COMMIT does not wait for the outcome')
  disk.record(SLOW)
  t.equal(disk.isSlow(), true)
  clock.now += 10_000
  t.equal(disk.isSlow(), false)
})

t.test('after one fast measurement COMMITs are measured until a slow one', async (t) => {
  const { disk, clock } = newDisk(...Array<number>(8).fill(SLOW))
  clock.now += 10_000
  disk.isSlow()
  disk.record(FAST)
  t.equal(disk.isSlow(), false)
  disk.record(FAST)
  t.equal(disk.isSlow(), false)
  disk.record(SLOW)
  disk.record(SLOW)
  t.equal(disk.isSlow(), true)
})

t.test('a disk stays slow when the clock of the machine is set ahead', async (t) => {
  const disk = new DiskSpeed()
  for (let i = 0; i < 8; i++) disk.record(SLOW)
  setClockAhead(t)
  t.equal(disk.isSlow(), true)
})
