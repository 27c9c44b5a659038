import cluster from 'node:cluster'
import type { Config } from '../config.ts'
import { OperationalError } from '../operational-error.ts'

/**
 * Runs the service as several worker processes that share its port. The first process, the primary, starts the others
 * with the same command: each of them comes here, too.
 */
export async function startProcesses (config: Config): Promise<void> {
  const { DATABASE_URL, PROCESSES } = config
  if (DATABASE_URL.startsWith('file:')) {
    throw new OperationalError(`PROCESSES is "${PROCESSES}", but SQLite lets one process write at a time, so that more ` +
      'would wait for each other: set DATABASE_URL to a PostgreSQL database, or PROCESSES to 1.')
  }
  if (cluster.isPrimary) {
    const { runPrimary } = await import('./primary.ts')
    await runPrimary(config)
  } else {
    const { serveAsWorker } = await import('./worker-process.ts')
    await serveAsWorker(config)
  }
}
