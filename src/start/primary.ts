import { numberOfProcesses, type Config } from '../config.ts'
import { createLogger, logWritten } from '../monitoring/logger.ts'
import { terminalDestination } from '../monitoring/terminal-format.ts'
import { OperationalError } from '../operational-error.ts'
import { SAME_REQUEST_MS, SIGNALS } from './signals.ts'
import { watchTerminals } from './terminals.ts'
import { WorkerGroup } from './worker-group.ts'

/** Starts the worker processes, and keeps them running until a signal. This process serves only the metrics. */
export async function runPrimary (config: Config): Promise<void> {
  const { METRICS_PORT: port, HOST: host, SHUTDOWN_GRACE_MS: graceMs } = config
  const log = createLogger(config, await terminalDestination())
  const shared = port === undefined ? undefined : new (await import('./shared-metrics.ts')).SharedMetrics()
  const group = new WorkerGroup({
    count: numberOfProcesses(config),
    graceMs,
    log,
    onMetrics: (worker, metrics) => { shared?.set(worker, metrics) },
    onEnd: (worker) => { shared?.end(worker) }
  })
  await shared?.listen({ host, port: port! }, async () => await group.ask('metrics'), log)
  const isTerminalClosed = watchTerminals()
  let stopping: Promise<void> | undefined
  let since = 0

  async function stop (signal: string): Promise<void> {
    log.info({ signal }, 'stopping')
    const areEnded = await group.stop()
    shared?.close()
    log.info('stopped')
    await logWritten(log)
    // At its exit Node restores the modes of its terminal, and aborts if that terminal was closed.
    if (isTerminalClosed()) process.kill(process.pid, 'SIGKILL')
    process.exit(areEnded ? 0 : 1)
  }

  const onSignal = (name: NodeJS.Signals): void => {
    if (name === 'SIGHUP' && stopping === undefined && !isTerminalClosed()) {
      void group.reload()
    } else if (stopping === undefined) {
      since = performance.now()
      stopping = stop(name)
    } else if (performance.now() - since > SAME_REQUEST_MS) {
      group.kill()
      process.exit(1)
    }
  }
  for (const name of SIGNALS) process.on(name, onSignal)
  // A closed terminal must not end the process while it stops.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})

  const end = await group.open()
  if (end === undefined || stopping !== undefined) return
  shared?.close()
  await logWritten(log)
  // The worker has said why.
  if (typeof end === 'number' && end !== 0) process.exit(end)
  throw new OperationalError(`The first worker process ended with ${end} before it served.`)
}
