import './v8-tuning.ts'
import { setFlagsFromString } from 'node:v8'
import closeWithGrace from 'close-with-grace'
import { buildApp } from '../app.ts'
import { readConfig, type Config } from '../config.ts'
import { canWrite } from '../database/open-database.ts'
import { openDemo } from '../seed/demo-store.ts'
import { migrateOrVerify } from '../database/migrations/startup-check.ts'
import { explainFailure } from './explain-failure.ts'

/**
 * How far the heap may grow before it is collected whole, in percent of what was alive. Requests under way
 * outlive the quick collections; V8's own measure, up to fourfold, would let their remains add up to 200 MB.
 */
const HEAP_GROWTH = 30

/** Connections that may wait to be accepted: thousands of followers come back at once after a restart. */
const BACKLOG = 4_096

/** The process that serves: database, listening, stopping. */
export async function serve (config: Config): Promise<void> {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWTH}`)
  await migrateOrVerify(config)
  const app = await buildApp(config)
  const closing = closeWithGrace({ delay: config.SHUTDOWN_GRACE_MS, logger: false }, async ({ err: error }) => {
    if (error !== undefined) app.log.fatal({ err: error }, 'stopping after an error')
    await app.close()
  })
  app.addHook('onClose', async () => { closing.uninstall() })

  try {
    await app.ready()
    // A database that may only be read would start, and then refuse every write.
    await canWrite(app.database)
    const greet = config.DEMO ? await openDemo(app) : undefined
    await app.listen({ port: config.PORT, host: config.HOST, backlog: BACKLOG })
    if (greet !== undefined) process.stderr.write(greet(app.listeningOrigin))
  } catch (error) {
    await app.close()
    throw error
  }
}

// `node dist/start/server.js` is `petstore start`, without the command line.
if (process.argv[1] === import.meta.filename) {
  try {
    await serve(readConfig(process.env))
  } catch (error) {
    process.stderr.write(`${explainFailure(error)}\n`)
    process.exit(1)
  }
}
