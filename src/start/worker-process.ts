import { limitHeapGrowth } from './v8-tuning.ts'
import cluster from 'node:cluster'
import type { FastifyInstance } from 'fastify'
import { buildApp } from '../app.ts'
import type { Config } from '../config.ts'
import { migrateOrVerify, verifyMigrations } from '../database/migrations/startup-check.ts'
import type { Siblings } from '../plugins/siblings.ts'
import { createCalls, type Calls } from './calls.ts'
import { exitGracefully } from './graceful-exit.ts'
import { listen } from './server.ts'
import type { Task } from './worker-group.ts'

/** Runs one of the processes that share a port. */
export async function serveAsWorker (config: Config): Promise<void> {
  // A terminal sends them to all processes. The primary decides what they mean.
  for (const name of ['SIGINT', 'SIGHUP'] as const) process.on(name, () => {})
  limitHeapGrowth()
  const { DATABASE_URL, SHUTDOWN_GRACE_MS: graceMs } = config
  const task = process.env['PETSTORE_WORKER'] as Task
  await (task === 'join' ? verifyMigrations(DATABASE_URL) : migrateOrVerify(config))

  const calls = createCalls(process as Required<NodeJS.Process>)
  const app = await buildApp(config, siblingsOf(calls))
  const stop = exitGracefully(app, graceMs, { signals: ['SIGTERM'] })
  calls.onCall('retire', async () => { void retire(app, graceMs).then(() => { stop('replaced') }) })
  cluster.worker!.on('disconnect', () => {
    // The primary is gone. Node would end this process at once, and with it the requests in flight.
    cluster.worker!.exitedAfterDisconnect = true
    stop('disconnect')
  })
  // From now on it hears of changes, even of those that come after its first look at the database.
  await calls.call('joined')
  if (await listen(app, config, config.DEMO && task === 'open')) await calls.call('ready')
}

function siblingsOf ({ call, onCall }: Calls): Siblings {
  return {
    async tell (topic, value) { await call('tell', { topic, value }) },
    async report (topic, value) { await call(topic, value) },
    onCall
  }
}

/** Leaves the port to another process: new connections at once, and those that are open after their next response. */
async function retire (app: FastifyInstance, graceMs: number): Promise<void> {
  app.log.info('another process takes over')
  await app.drain(graceMs)
}
