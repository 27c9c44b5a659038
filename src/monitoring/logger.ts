import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import { pino, type DestinationStream } from 'pino'
import type { Config } from '../config.ts'

/** Lines are written together, as soon as there are so many characters of them or this many ms have passed. */
const BUFFER_LENGTH = 16_000
const AT_LATEST_MS = 100

/** JSON lines on standard output, or on `destination`. No line holds a key, a header or a body. */
export function createLogger ({ LOG_LEVEL }: Pick<Config, 'LOG_LEVEL'>, destination: string | number | DestinationStream = 1): FastifyBaseLogger {
  return pino({ level: LOG_LEVEL, serializers: { err: describeError } }, typeof destination === 'object' ? destination : bufferedDestination(destination))
}

/** What hands on the lines that wait, for each destination. */
const flushes = new Set<() => void>()
const flushAll = (): void => { for (const flush of flushes) flush() }
process.on('beforeExit', flushAll).on('exit', flushAll)

/**
 * Joins lines before pino's own destination gets them. That one measures all that it holds with every line,
 * for which it copies it: with thousands of lines a second, half of a full buffer each time.
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
      timer = setTimeout(flush, AT_LATEST_MS).unref()
      flushes.add(flush)
    },
    // For pino, after a line that is fatal.
    flushSync () {
      flush()
      stream.flushSync()
    }
  }
}

/** One line for each request, once it was answered. */
export function requestLogging (app: FastifyInstance): void {
  app.addHook('onResponse', ({ log, method, routeOptions }, reply, done) => {
    log.info({ method, route: routeOptions.url, status: reply.statusCode, ms: Math.round(reply.elapsedTime * 100) / 100 }, 'request')
    done()
  })
}

interface Described { type: string, code?: string, message: string, stack?: string, cause?: Described }

/** Prisma's errors may quote the arguments of a call, so only their last line is kept. */
function describeError (error: Error & { code?: string }): Described {
  const { name, code, message, stack, cause } = error
  return {
    type: name,
    ...(code === undefined ? {} : { code }),
    message: message.trim().split('\n').at(-1) ?? '',
    stack: stack?.split('\n').filter((line) => /^\s+at /.test(line)).join('\n') ?? '',
    ...(cause instanceof Error ? { cause: describeError(cause) } : {})
  }
}
