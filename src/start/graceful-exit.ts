import closeWithGrace from 'close-with-grace'
import type { FastifyInstance } from 'fastify'
import { releaseClosedFiles } from '../database/sqlite/driver.ts'
import { logWritten } from '../monitoring/logger.ts'
import { DATABASE_CLOSE_MS } from '../plugins/graceful-shutdown.ts'
import { SAME_REQUEST_MS, SIGNALS } from './signals.ts'
import { watchTerminals } from './terminals.ts'

/** Signals of a broken process. JavaScript cannot run then, and a listener would let the process loop for ever. */
const FAULTS = ['SIGILL', 'SIGTRAP', 'SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGSEGV'] as const

interface ExitOptions {
  /** Runs before the app closes. */
  release?: () => void
  /** The signals that close the app. */
  signals?: readonly NodeJS.Signals[]
}

/**
 * Closes the app on a signal or an unexpected error, and then exits. A later signal exits at once.
 *
 * @returns a function that does the same for another reason
 */
export function exitGracefully (
  app: FastifyInstance, graceMs: number, { release = () => {}, signals = SIGNALS }: ExitOptions = {}
): (reason: string) => void {
  let signal: string | undefined
  let since = 0

  const delay = Math.max(graceMs, DATABASE_CLOSE_MS)
  const options = { delay, logger: false as const, skip: [...SIGNALS, ...FAULTS] }
  const isTerminalClosed = watchTerminals()
  const closing = closeWithGrace(options, async ({ err: error, signal: other }) => {
    if (error === undefined) app.log.info({ signal: signal ?? other }, 'stopping')
    else app.log.fatal({ err: error }, 'stopping after an unexpected error')
    release()
    await app.close()
    await releaseClosedFiles()
    app.log.info('stopped')
    await logWritten(app.log)
    // At its exit Node restores the modes of its terminal, and aborts if that terminal was closed.
    if (isTerminalClosed()) process.kill(process.pid, 'SIGKILL')
  })

  const stop = (reason: string): void => {
    if (signal !== undefined) return
    signal = reason
    since = performance.now()
    closing.close()
  }
  const onSignal = (name: NodeJS.Signals): void => {
    if (signal !== undefined && performance.now() - since > SAME_REQUEST_MS) process.exit(1)
    stop(name)
  }
  for (const name of signals) process.on(name, onSignal)
  // A closed terminal must not end the process while it stops.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})

  app.addHook('onClose', async () => {
    // An app that closed for another reason leaves its process alone.
    if (signal !== undefined) return
    closing.uninstall()
    for (const name of signals) process.off(name, onSignal)
  })
  return stop
}
