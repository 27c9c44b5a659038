import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { QueuedCommand } from '../../../src/database/group-commit/command.ts'
import { createLockWaiters } from '../../../src/database/group-commit/lock-waiters.ts'

t.test('a write that has waited for three seconds is refused while younger ones are tried', async (t) => {
  const log: string[] = []
  const nameOf = (entry: QueuedCommand): string => entry.input as string
  let left = 5
  let refused = (): void => {}
  const oldIsRefused = new Promise<void>((resolve) => { refused = resolve })
  await new Promise<void>((resolve) => {
    const waiters = createLockWaiters({
      async run (entry) {
        log.push(`${nameOf(entry)} is tried`)
        // The old one is due during this attempt.
        if (nameOf(entry) === 'b') await Promise.race([oldIsRefused, sleep(2_000)])
        throw new Error('the row is locked')
      },
      isConflict: () => true,
      onError (entry) {
        log.push(`${nameOf(entry)} is refused`)
        if (nameOf(entry) === 'the old one') refused()
      },
      onEnd (entry) {
        t.notOk(waiters.has(entry))
        if (--left === 0) resolve()
      }
    })
    const add = (input: string, waitedMs: number): void => {
      const entry = { input, since: Date.now() - waitedMs } as QueuedCommand
      waiters.add(entry, new Error('the row is locked'))
      t.ok(waiters.has(entry))
    }
    add('the old one', 1_500)
    for (const name of ['b', 'c', 'd', 'e']) add(name, 0)
  })
  t.same(log.slice(0, 3), ['the old one is tried', 'b is tried', 'the old one is refused'])
  t.equal(log.filter((line) => line.endsWith('refused')).length, 5)
})
