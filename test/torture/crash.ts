import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Stage } from './harness.ts'
import { repeat, verify } from './verify.ts'
import { startWorkload } from './workload.ts'

/**
 * The service is killed at random moments, some of them while it starts; its clients repeat with their
 * keys until they are answered. The system's cache outlives a killed process, so this proves atomicity;
 * for durability see `durability.ts`.
 */
export async function crash ({ quick, report, freshUrl, start, openStore }: Stage): Promise<void> {
  const url = await freshUrl()
  const service = await start({ DATABASE_URL: url })
  const store = await openStore(() => service.port)
  const load = startWorkload(store, { workers: 24, retry: true, pause: 10 })

  const rounds = quick ? 4 : 20
  for (let round = 1; round <= rounds; round++) {
    await sleep(randomInt(50, quick ? 500 : 1500))
    await service.kill()
    report.rounds++
    if (round % 4 === 0) {
      await service.launch()
      await sleep(randomInt(0, 600))
      await service.kill()
      report.rounds++
    }
    await service.start()
    await repeat(store, report, 50)
  }

  await sleep(200)
  const lost = await load.stop()
  if (lost > 0) report.violations.push(`${lost} clients were never answered`)
  await repeat(store, report, 500)
  await verify(url, store, report)
  const unanswered = load.replies.filter(({ status }) => status === 0).length
  report.notes.push(`${unanswered} requests got no answer and were repeated; ${load.replies.filter(({ headers }) => headers['idempotency-replayed'] !== undefined).length} were replays`)
}
