import { limitHeapGrowth } from './v8-tuning.ts'
import { buildApp } from '../app.ts'
import type { FastifyInstance } from 'fastify'
import type { Config } from '../config.ts'
import { checkWritable } from '../database/database.ts'
import { reachableOrigin } from '../http/http-url.ts'
import { openDemo } from '../seed/demo-store.ts'
import { migrateOrVerify } from '../database/migrations/startup-check.ts'
import { LISTEN_BACKLOG } from '../plugins/connections.ts'
import { exitGracefully } from './graceful-exit.ts'

/** Runs the process that serves HTTP: prepares the database, listens, and stops on SIGTERM or SIGINT. */
export async function serve (config: Config): Promise<void> {
  limitHeapGrowth()
  await migrateOrVerify(config)
  const app = await buildApp(config)
  exitGracefully(app, config.SHUTDOWN_GRACE_MS)
  await listen(app, config, config.DEMO)
}

/**
 * Listens, after checks of the database, and then prints the demo store's greeting. A failure closes the app.
 *
 * @returns false if the app was closed meanwhile, as by a signal
 */
export async function listen (
  app: FastifyInstance, config: Pick<Config, 'PORT' | 'HOST'>, hasDemo: boolean
): Promise<boolean> {
  try {
    await app.ready()
    // Otherwise the service would start on a read-only database, and then every write would fail.
    await checkWritable(app.database)
    const greet = hasDemo ? await openDemo(app) : undefined
    await app.listen({ port: config.PORT, host: config.HOST, backlog: LISTEN_BACKLOG })
    if (greet !== undefined) process.stderr.write(greet(reachableOrigin(app.listeningOrigin)))
    return true
  } catch (error) {
    if (app.isStopping()) return false
    await app.close()
    throw error
  }
}
