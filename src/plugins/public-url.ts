import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { Config } from '../config.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** `PUBLIC_URL`: with it, `Location` and `Link` are absolute URLs. Empty if it is not set. */
    publicUrl: string
    /** `BASE_PATH`, the prefix of all API routes. Empty if it is not set. */
    basePath: string
  }
}

/** Adds the URL under which clients reach the service. */
export const publicUrl = fp(async function publicUrl (
  app: FastifyInstance, { PUBLIC_URL, BASE_PATH }: Pick<Config, 'PUBLIC_URL' | 'BASE_PATH'>
) {
  app.decorate('publicUrl', PUBLIC_URL)
  app.decorate('basePath', BASE_PATH)
}, { name: 'public-url' })
