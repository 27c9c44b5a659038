import closeWithGrace from 'close-with-grace'
import { buildApp } from './app.ts'
import { readConfig } from './config.ts'
import { pendingMigrations } from './database/migrate.ts'
import { reasonOf, StartError } from './startFailure.ts'

/** How long an interval does nothing but keep the process alive, in ms. */
const DAY_MS = 86_400_000

/** A process that only delivers, beside services with DELIVERY=false: the same service, which never listens. */
async function main (): Promise<void> {
  const config = { ...readConfig(process.env), DELIVERY: true }
  const pending = await pendingMigrations(config.DATABASE_URL)
  if (pending.length > 0) throw new StartError(`The database misses ${pending.length} migration(s): ${pending.join(', ')}. Start the service first, or apply them with: npm run migrate`)

  const app = await buildApp(config)
  const alive = setInterval(() => {}, DAY_MS)
  closeWithGrace({ delay: config.SHUTDOWN_GRACE_MS, logger: false }, async ({ err: error }) => {
    if (error !== undefined) app.log.fatal({ err: error }, 'stopping after an error')
    clearInterval(alive)
    await app.close()
  })
  await app.ready()
  app.log.info('delivering')
}

main().catch((error: unknown) => {
  process.stderr.write(`${reasonOf(error)}\n`)
  process.exit(1)
})
