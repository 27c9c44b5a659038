import { Type } from '@sinclair/typebox'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { ErrorClass } from '../errors.ts'
import { NO_ADDITIONAL_PROPERTIES, StringEnum } from '../http/common-schemas.ts'
import { exampleOfError } from '../openapi/error-responses.ts'
import type { SharedDocument } from '../openapi/share-components.ts'
import { accountOf } from '../plugins/admission.ts'
import { ConnectionLost } from './call-tool.ts'
import { countMessage } from './count-message.ts'
import { toolsOf, type OperationTool } from './tools.ts'

const QuerySchema = Type.Object({ tools: Type.Optional(StringEnum(['store', 'lab', 'all'])) }, NO_ADDITIONAL_PROPERTIES)

/**
 * Adds `POST /mcp`, which offers the operations of its scope as tools of the Model Context Protocol (Streamable HTTP,
 * without sessions). Register it before the operations.
 */
export const mcp = fp(async function mcp (app: FastifyInstance, { errors }: { errors: ErrorClass[] }) {
  const reading = new Set<string>()
  app.addHook('onRoute', ({ method, config, schema }) => {
    const { operationId } = (schema ?? {}) as { operationId?: string }
    if (operationId !== undefined && (method === 'GET' || config?.readsOnly === true)) reading.add(operationId)
  })

  let tools: OperationTool[] | undefined
  const errorCodes = errors.map((CodedError) => exampleOfError(CodedError))

  await app.register(async (scope) => {
    // The library parses the message itself, and answers what is no JSON as the protocol requires.
    scope.removeContentTypeParser('application/json')
    scope.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
      const admitted = app.admission.admitBody(accountOf(request), body.length)
      if (admitted === undefined) done(null, body)
      else void admitted.then(() => { done(null, body) })
    })
    scope.decorateRequest('isCounted', false)
    // Other requests count before their bodies are read. A message can become a request that counts for itself.
    scope.setErrorHandler(async (error, request, reply) => {
      await countMessage(request, reply)
      throw error
    })
    scope.post('/mcp', {
      schema: { hide: true, querystring: QuerySchema, body: Type.Unknown() },
      config: { authenticated: true },
      onRequest: [refuseForeignPages, app.verifyBearerAuth!]
    }, async (request, reply) => {
      // One body of 128 KB could ask for 2,900 lists of all tools: 270 MB. The protocol has no batches any more.
      if (/^\s*\[/.test(request.body as string)) {
        await countMessage(request, reply)
        return await sendError(reply, 400, INVALID_REQUEST, 'Send one message, not a batch')
      }
      // The library is loaded with the first message: few services get one.
      const { answer } = await import('./server.ts')
      tools ??= toolsOf(app.swagger() as unknown as SharedDocument, (operationId) => reading.has(operationId))
      try {
        const { status, headers, text } = await answer(request, reply, { tools, errors: errorCodes })
        // Such as a ping, a notification, or what is no message.
        await countMessage(request, reply)
        return await reply.code(status).headers(headers).send(text)
      } catch (error) {
        if (!(error instanceof ConnectionLost)) throw error
        reply.hijack()
        reply.raw.socket?.destroy()
        return reply
      }
    })
  })
}, { name: 'mcp', dependencies: ['authentication', 'content-type-parsers', 'openapi'] })

/** Codes of JSON-RPC errors. Servers define those from -32,000 to -32,099 themselves. */
const INVALID_REQUEST = -32_600
const FORBIDDEN_ORIGIN = -32_000

/** Pages that are served by the browser's own machine. */
const LOCAL_ORIGIN = /^https?:\/\/(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/

/**
 * Refuses pages of origins that CORS_ORIGINS does not allow, as the protocol requires of servers that a browser of the
 * same machine can reach.
 */
async function refuseForeignPages ({ headers: { origin } }: FastifyRequest, reply: FastifyReply): Promise<unknown> {
  if (origin === undefined || LOCAL_ORIGIN.test(origin) || reply.hasHeader('access-control-allow-origin')) return
  return await sendError(reply, 403, FORBIDDEN_ORIGIN, `CORS_ORIGINS does not allow pages of ${origin}`)
}

/** Sends a JSON-RPC error about a request that is no message. */
async function sendError (reply: FastifyReply, status: number, code: number, message: string): Promise<unknown> {
  return await reply.code(status).send({ jsonrpc: '2.0', id: null, error: { code, message } })
}
