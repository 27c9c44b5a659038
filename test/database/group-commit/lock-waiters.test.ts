import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { QueuedCommand } from '../../../src/database/group-commit/command.ts'
import { createLockWaiters } from '../../../src/database/group-commit/lock-waiters.ts'

t.test('a write that has waited for two seconds is refused while younger ones are tried', async (t) => {
  const log: string[] = []
  const nameOf = (entry: QueuedCommand): string => entry.input as string
  let left = 5
  let inTime = false
  let refused = (_isRefused: boolean): void => {}
  const oldIsRefused = new Promise<boolean>((resolve) => { refused = resolve })
  await new Promise<void>((resolve) => {
    const waiters = createLockWaiters({
      async run (entry) {
        log.push(`${nameOf(entry)} is tried`)
        // The old one is due during this attempt, if not before.
        if (nameOf(entry) === 'b') inTime = await Promise.race([oldIsRefused, sleep(60_000, false, { ref: false })])
        throw new Error('the row is locked')
      },
      isConflict: () => true,
      onError (entry) {
        log.push(`${nameOf(entry)} is refused`)
        if (nameOf(entry) === 'the old one') refused(true)
      },
      onEnd (entry) {
        t.notOk(waiters.has(entry))
        if (--left === 0) resolve()
      }
    })
    const add = (input: string, waitedMs: number): void => {
      const entry = { input, since: performance.now() - waitedMs } as QueuedCommand
      waiters.add(entry, new Error('the row is locked'))
      t.ok(waiters.has(entry))
    }
    add('the old one', 1_000)
    for (const name of ['b', 'c', 'd', 'e']) add(name, 0)
  })
  t.ok(inTime, 'the old one does not wait for the attempt of b')
  t.equal(log.filter((line) => line.endsWith('refused')).length, 5)
})
