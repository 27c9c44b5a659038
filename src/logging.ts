import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import { pino, type DestinationStream } from 'pino'
import type { Config } from './config.ts'

/** Lines are written together, as soon as there are so many bytes of them or this many ms have passed. */
const FLUSH = { minLength: 16_000, periodicFlush: 100 }

/** JSON lines on standard output, or on `destination`. No line holds a key, a header or a body. */
export function logging ({ LOG_LEVEL }: Pick<Config, 'LOG_LEVEL'>, destination: string | number | DestinationStream = 1): FastifyBaseLogger {
  const stream = typeof destination === 'object' ? destination : pino.destination({ dest: destination, sync: false, ...FLUSH })
  return pino({ level: LOG_LEVEL, serializers: { err: describeError } }, stream)
}

/** One line for each request, once it was answered. */
export function logRequests (app: FastifyInstance): void {
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
