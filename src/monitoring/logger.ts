import type { FastifyBaseLogger } from 'fastify'
import { pino, type DestinationStream } from 'pino'
import type { Config } from '../config.ts'

/** Number of buffered characters at which lines are written: many lines share one write. */
const BUFFER_LENGTH = 16_000

/** Maximum time that a line stays in the buffer, so that a quiet service also logs promptly. */
const MAX_DELAY_MS = 100

/** A path, a file descriptor or a stream. */
type Destination = string | number | DestinationStream

/**
 * Creates a logger that writes JSON lines. No line contains a key, a header or a body.
 *
 * @param destination by default standard output
 */
export function createLogger (
  { LOG_LEVEL }: Pick<Config, 'LOG_LEVEL'>, destination: Destination = 1
): FastifyBaseLogger {
  const stream = typeof destination === 'object' ? destination : bufferedDestination(destination)
  return pino({ level: LOG_LEVEL, serializers: { err: describeError } }, stream)
}

/** The flush functions of all destinations that have buffered a line. */
const flushes = new Set<() => void>()
const flushAll = (): void => { for (const flush of flushes) flush() }
process.on('beforeExit', flushAll).on('exit', flushAll)

/**
 * Joins lines before pino's own destination gets them. For each line, that destination copies its whole buffer to
 * measure it: at thousands of lines per second, half of a full buffer on average.
 */
function bufferedDestination (fd: string | number): DestinationStream & { flushSync: () => void } {
  const stream = pino.destination({ dest: fd, sync: false, minLength: BUFFER_LENGTH })
  let lines: string[] = []
  let length = 0
  let timer: NodeJS.Timeout | undefined

  function flush (): void {
    clearTimeout(timer)
    timer = undefined
    if (length === 0) return
    stream.write(lines.join(''))
    stream.flush()
    lines = []
    length = 0
  }

  return {
    write (line) {
      lines.push(line)
      length += line.length
      if (length >= BUFFER_LENGTH) return flush()
      if (timer !== undefined) return
      timer = setTimeout(flush, MAX_DELAY_MS).unref()
      flushes.add(flush)
    },
    // Pino calls this after a fatal line.
    flushSync () {
      flush()
      stream.flushSync()
    }
  }
}

interface DatabaseCause { originalCode?: string, originalMessage?: string }

interface ErrorDescription { type: string, code?: string, message: string, stack?: string, cause?: ErrorDescription }

/**
 * Describes an error. Keeps only the last line of its message: Prisma's errors quote the arguments of a call. A driver
 * adapter's error names only a kind, and its cause has the message and the code of the database.
 */
function describeError (error: Error & { code?: string }): ErrorDescription {
  const { name, stack, cause } = error
  const { originalCode, originalMessage } = cause instanceof Object ? cause as DatabaseCause : {}
  const { code = originalCode } = error
  const message = originalMessage ?? error.message
  return {
    type: name,
    ...(code === undefined ? {} : { code }),
    message: message.trim().split('\n').at(-1) ?? '',
    stack: stack?.split('\n').filter((line) => /^\s+at /.test(line)).join('\n') ?? '',
    ...(cause instanceof Error ? { cause: describeError(cause) } : {})
  }
}
