import closeWithGrace from 'close-with-grace'
import { buildApp } from './app.ts'
import { ConfigError, readConfig } from './config.ts'
import { openDemo } from './demo.ts'
import { migrate, pendingMigrations } from './database/migrate.ts'
import { databaseOf } from './database/dialect.ts'

/** The process: settings, database, listening, stopping. The only reader of process.env. */
async function main (): Promise<void> {
  const config = readConfig(process.env)
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
    const demo = config.DEMO ? await openDemo(app) : undefined
    await app.listen({ port: config.PORT, host: config.HOST })
    if (demo !== undefined) process.stderr.write(demo.greeting(app.listeningOrigin))
  } catch (error) {
    await app.close()
    throw error
  }
}

/** The service cannot start, for a reason that whoever runs it can change. */
class StartError extends Error {}

main().catch((error: unknown) => {
  process.stderr.write(`${reasonOf(error)}\n`)
  process.exit(1)
})

/** One clear message: what is wrong and what to do; no stack for what is not our defect. */
function reasonOf (error: unknown): string {
  if (error instanceof ConfigError || error instanceof StartError) return error.message
  const { code, message } = error as { code?: string, message: string }
  switch (code) {
    case 'EADDRINUSE': return 'The port is in use. Stop what listens on it, or set PORT to another.'
    case 'EACCES': return 'Listening on this port is not allowed. Set PORT to one above 1023.'
    default: return `The service cannot start: ${message.trim().split('\n').at(-1)}`
  }
}
