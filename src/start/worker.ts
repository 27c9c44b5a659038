import closeWithGrace from 'close-with-grace'
import { buildApp } from '../app.ts'
import type { Config } from '../config.ts'
import { verifyMigrations } from '../database/migrations/startup-check.ts'

/** How long an interval does nothing but keep the process alive, in ms. */
const DAY_MS = 86_400_000

/** A process that only delivers, beside services with DELIVERY=false: the same service, which never listens. */
export async function deliver (config: Config): Promise<void> {
  await verifyMigrations(config.DATABASE_URL)
  const app = await buildApp({ ...config, DELIVERY: true })
  const alive = setInterval(() => {}, DAY_MS)
  closeWithGrace({ delay: config.SHUTDOWN_GRACE_MS, logger: false }, async ({ err: error }) => {
    if (error !== undefined) app.log.fatal({ err: error }, 'stopping after an error')
    clearInterval(alive)
    await app.close()
  })
  await app.ready()
  app.log.info('delivering')
}
