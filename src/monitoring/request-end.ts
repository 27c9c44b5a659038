import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

type RequestEnd = (request: FastifyRequest, reply: FastifyReply, isComplete: boolean) => void

/**
 * Calls a function at the end of each request, after its response or when its connection closes before. Fastify runs
 * no `onResponse` hook for the latter, such as a time-out of the client or an event stream that the client leaves.
 *
 * Register the caller before all plugins whose hooks refuse requests.
 */
export function onRequestEnd (app: FastifyInstance, end: RequestEnd): void {
  app.addHook('onRequest', (request, reply, done) => {
    // `writableFinished` stays false for requests that the service injects, as those of tools.
    let isComplete = false
    reply.raw.on('finish', () => { isComplete = true }).on('close', () => { end(request, reply, isComplete) })
    done()
  })
}
