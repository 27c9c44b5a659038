import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import { pino } from 'pino'
import type { Config } from './config.ts'

/** JSON lines on standard output. No line holds a key, a header or a body. */
export function logging ({ LOG_LEVEL }: Pick<Config, 'LOG_LEVEL'>): FastifyBaseLogger {
  return pino({ level: LOG_LEVEL, serializers: { err: describeError } })
}

/** One line for each request, once it was answered. */
export function logRequests (app: FastifyInstance): void {
  app.addHook('onResponse', async ({ log, method, routeOptions }, reply) => {
    log.info({ method, route: routeOptions.url, status: reply.statusCode, ms: Math.round(reply.elapsedTime * 100) / 100 }, 'request')
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
