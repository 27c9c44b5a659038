import cluster from 'node:cluster'
import { numberOfProcesses, type Config } from '../config.ts'
import { OperationalError } from '../operational-error.ts'

/** @throws OperationalError if the database is not for several processes */
export function checkProcesses (config: Config): void {
  if (numberOfProcesses(config) === 1 || !config.DATABASE_URL.startsWith('file:')) return
  throw new OperationalError(`PROCESSES is "${config.PROCESSES}", but SQLite lets one process write at a time, so that ` +
    'more would wait for each other: set DATABASE_URL to a PostgreSQL database, or PROCESSES to 1.')
}

/**
 * Runs the service as several worker processes that share its port. The first process, the primary, starts the others
 * with the same command: each of them comes here, too.
 */
export async function startProcesses (config: Config): Promise<void> {
  checkProcesses(config)
  if (cluster.isPrimary) {
    const { runPrimary } = await import('./primary.ts')
    await runPrimary(config)
  } else {
    const { serveAsWorker } = await import('./worker-process.ts')
    await serveAsWorker(config)
  }
}
