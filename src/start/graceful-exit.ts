import { isatty } from 'node:tty'
import closeWithGrace from 'close-with-grace'
import type { FastifyInstance } from 'fastify'
import { releaseClosedFiles } from '../database/sqlite/driver.ts'
import { logWritten } from '../monitoring/logger.ts'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Signals of a broken process. JavaScript cannot run then, and a listener would let the process loop for ever. */
const FAULTS = ['SIGILL', 'SIGTRAP', 'SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGSEGV'] as const

/**
 * Time in which further signals count as the first one. Ctrl-C reaches the process from the terminal and from npm, and
 * a closed terminal ends npm as well.
 */
const SAME_REQUEST_MS = 2_000

/**
 * Closes the app on a signal or an unexpected error, and then exits. A later signal exits at once.
 *
 * @param release runs before the app closes
 */
export function exitGracefully (app: FastifyInstance, graceMs: number, release: () => void = () => {}): void {
  let signal: string | undefined
  let since = 0

  const options = { delay: graceMs, logger: false as const, skip: [...SIGNALS, ...FAULTS] }
  const terminals = [0, 1, 2].filter((fd) => isatty(fd))
  const closing = closeWithGrace(options, async ({ err: error, signal: other }) => {
    if (error === undefined) app.log.info({ signal: signal ?? other }, 'stopping')
    else app.log.fatal({ err: error }, 'stopping after an unexpected error')
    release()
    await app.close()
    await releaseClosedFiles()
    app.log.info('stopped')
    await logWritten(app.log)
    // At its exit Node restores the modes of its terminal, and aborts if that terminal was closed.
    if (terminals.some((fd) => !isatty(fd))) process.kill(process.pid, 'SIGKILL')
  })

  const onSignal = (name: NodeJS.Signals): void => {
    if (signal === undefined) {
      signal = name
      since = performance.now()
      closing.close()
    } else if (performance.now() - since > SAME_REQUEST_MS) {
      process.exit(1)
    }
  }
  for (const name of SIGNALS) process.on(name, onSignal)
  // A closed terminal must not end the process while it stops.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})

  app.addHook('onClose', async () => {
    // An app that closed for another reason leaves its process alone.
    if (signal !== undefined) return
    closing.uninstall()
    for (const name of SIGNALS) process.off(name, onSignal)
  })
}
