import closeWithGrace from 'close-with-grace'
import { buildApp } from './app.ts'
import { readConfig } from './config.ts'
import { openDemo } from './demo.ts'
import { migrate, pendingMigrations } from './database/migrate.ts'
import { databaseOf } from './database/dialect.ts'
import { reasonOf, StartError } from './startFailure.ts'

/** Connections that may wait to be accepted: thousands of followers come back at once after a restart. */
const BACKLOG = 4_096

/** The process: settings, database, listening, stopping. It and the worker are the only readers of process.env. */
async function main (): Promise<void> {
  const config = readConfig(environment())
  if (config.MIGRATE_ON_START ?? databaseOf(config.DATABASE_URL) === 'sqlite') {
    await migrate(config.DATABASE_URL)
  } else {
    const pending = await pendingMigrations(config.DATABASE_URL)
    if (pending.length > 0) throw new StartError(`The database misses ${pending.length} migration(s): ${pending.join(', ')}. Apply them with: npm run migrate`)
  }

  const app = await buildApp(config)
  const closing = closeWithGrace({ delay: config.SHUTDOWN_GRACE_MS, logger: false }, async ({ err: error }) => {
    if (error !== undefined) app.log.fatal({ err: error }, 'stopping after an error')
    await app.close()
  })
  app.addHook('onClose', async () => { closing.uninstall() })

  try {
    await app.ready()
    // A database that may only be read would start, and then refuse every write.
    await app.database.writer.$executeRaw`UPDATE accounts SET name = name WHERE false`
    const greet = config.DEMO ? await openDemo(app) : undefined
    await app.listen({ port: config.PORT, host: config.HOST, backlog: BACKLOG })
    if (greet !== undefined) process.stderr.write(greet(app.listeningOrigin))
  } catch (error) {
    await app.close()
    throw error
  }
}

/** `npm start` says --demo: a demo store belongs into the database that nobody named. */
function environment (): NodeJS.ProcessEnv {
  const { DATABASE_URL = '', DEMO = '' } = process.env
  const open = process.argv.includes('--demo') && DATABASE_URL === '' && DEMO === ''
  return open ? { ...process.env, DEMO: 'true' } : process.env
}

main().catch((error: unknown) => {
  process.stderr.write(`${reasonOf(error)}\n`)
  process.exit(1)
})
