import { buildApp } from '../app.ts'
import type { Config } from '../config.ts'
import { verifyMigrations } from '../database/migrations/startup-check.ts'
import { exitGracefully } from './graceful-exit.ts'

/** Interval of a timer that does nothing but keep the process alive. */
const DAY_MS = 86_400_000

/** Runs a process that only delivers, for services with DELIVERY=false: the same service, but it never listens. */
export async function deliver (config: Config): Promise<void> {
  await verifyMigrations(config.DATABASE_URL)
  const app = await buildApp({ ...config, DELIVERY: true })
  const keepAlive = setInterval(() => {}, DAY_MS)
  exitGracefully(app, config.SHUTDOWN_GRACE_MS, { release: () => { clearInterval(keepAlive) } })
  await app.ready()
  app.log.info('Delivering messages and webhooks')
}
