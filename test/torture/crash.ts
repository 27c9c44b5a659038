import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ScenarioContext } from './harness.ts'
import { repeatWrites, verifyStore } from './verify.ts'
import { startWorkload } from './workload.ts'

/**
 * Kills the service at random moments, some of them during its start. The clients repeat their requests with the same
 * keys until they get an answer. The system's cache survives a killed process, so that this proves atomicity;
 * `durability.ts` proves durability.
 */
export async function crash ({ quick, report, freshUrl, start, openStore }: ScenarioContext): Promise<void> {
  const url = await freshUrl()
  const service = await start({ DATABASE_URL: url })
  const store = await openStore(() => service.port)
  const load = startWorkload(store, { workers: 24, retry: true, pause: 10 })

  const rounds = quick ? 2 : 20
  for (let round = 1; round <= rounds; round++) {
    await sleep(randomInt(50, quick ? 500 : 1500))
    await service.kill()
    report.rounds++
    if (round % (quick ? 2 : 4) === 0) {
      await service.launch()
      await sleep(randomInt(0, 600))
      await service.kill()
      report.rounds++
    }
    await service.start()
    await repeatWrites(store, report, 50)
  }

  await sleep(200)
  const lost = await load.stop()
  if (lost > 0) report.violations.push(`${lost} clients got no answer`)
  await repeatWrites(store, report, 500)
  await verifyStore(url, store, report)
  const unanswered = load.replies.filter(({ status }) => status === 0).length
  const replays = load.replies.filter(({ headers }) => headers['idempotency-replayed'] !== undefined).length
  report.notes.push(`${unanswered} requests got no answer and were repeated; ${replays} answers were replays`)
}
