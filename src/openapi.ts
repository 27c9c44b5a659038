import swagger from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { Config } from './config.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The errors that are this operation's own; the common ones are documented everywhere. */
    errors?: Array<new () => Error>
  }
}

export const openapi = fp(async function openapi (app: FastifyInstance, config: Config) {
  await app.register(swagger, {
    openapi: {
      openapi: '3.0.3',
      info: { title: 'Petstore', version: '1.0.0' },
      components: { securitySchemes: { bearerAuth: { type: 'http', scheme: 'bearer' } } },
      security: [{ bearerAuth: [] }]
    },
    refResolver: { buildLocalReference: (json, _base, _fragment, i) => String(json.$id ?? `def-${i}`) }
  })
}, { name: 'openapi' })
