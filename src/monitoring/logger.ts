import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import { pino, type DestinationStream, type Logger } from 'pino'
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

/** A reader that takes nothing for so long does not keep the process from ending. */
const STALLED_MS = 500

/** Maximum size of the lines that wait for such a reader, in characters. Further lines are lost. */
const MAX_WAITING = 8_000_000

/** All destinations that have buffered a line. */
const buffered = new Set<BufferedDestination>()
const flushAll = (): void => { for (const { flushLines } of buffered) flushLines() }
process.on('beforeExit', flushAll).on('exit', () => {
  // Node waits at its exit for the thread that writes, and a pipe that nobody reads blocks that thread for ever.
  if ([...buffered].some(({ isStalled }) => isStalled())) process.kill(process.pid, 'SIGKILL')
  flushAll()
})

interface BufferedDestination extends DestinationStream {
  flushLines: () => void
  isStalled: () => boolean
  /** Calls back when the lines are written. Pino's own `flush` calls this. */
  flush: (done: () => void) => void
  flushSync: () => void
}

/**
 * Joins lines before pino's own destination gets them. For each line, that destination copies its whole buffer to
 * measure it: at thousands of lines per second, half of a full buffer on average.
 */
function bufferedDestination (fd: string | number): BufferedDestination {
  // With a larger minimum, a rest below it would wait for the next line; with none, `flush` would wait for nothing.
  const stream = pino.destination({ dest: fd, sync: false, minLength: 1, maxLength: MAX_WAITING })
  let lines: string[] = []
  let length = 0
  let timer: NodeJS.Timeout | undefined
  /** When the reader last took something, while lines wait for it. */
  let waitsSince: number | undefined
  let hasFailed = false
  const flushSync = stream.flushSync.bind(stream)
  stream
    .on('write', () => {
      waitsSince = performance.now()
      hasFailed = false
    })
    .on('drain', () => { waitsSince = undefined })
    // A pipe was closed, or a disk is full: the next lines try again. The process goes on.
    .on('error', () => { hasFailed = true })
  // Pino calls it at the exit as well, and its own version repeats a failed write for ever.
  stream.flushSync = () => { if (!hasFailed) flushSync() }

  function flushLines (): void {
    clearTimeout(timer)
    timer = undefined
    if (length === 0) return
    waitsSince ??= performance.now()
    stream.write(lines.join(''))
    lines = []
    length = 0
  }

  const destination: BufferedDestination = {
    write (line) {
      buffered.add(destination)
      lines.push(line)
      length += line.length
      if (length >= BUFFER_LENGTH) return flushLines()
      if (timer !== undefined) return
      timer = setTimeout(flushLines, MAX_DELAY_MS).unref()
    },
    flushLines,
    isStalled: () => !hasFailed && waitsSince !== undefined && performance.now() - waitsSince > STALLED_MS,
    flush (done) {
      flushLines()
      stream.flush(done)
    },
    // Pino calls this after a fatal line.
    flushSync () {
      flushLines()
      stream.flushSync()
    }
  }
  return destination
}

/** Waits until the lines of a logger are written, or its reader stalls. */
export async function logWritten (log: FastifyBaseLogger): Promise<void> {
  const written = new Promise<void>((resolve) => { (log as Logger).flush(() => { resolve() }) })
  await Promise.race([written, sleep(2 * STALLED_MS)])
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
