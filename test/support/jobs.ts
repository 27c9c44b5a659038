import Fastify, { type FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { mock } from 'node:test'
import type { Test } from 'tap'

type Parts = Partial<Pick<FastifyInstance, 'commit' | 'clocks' | 'read'>>

/**
 * Starts an app with nothing but a plugin with a job.
 *
 * @param register registers the plugin
 * @param database what the job uses of the database plugin
 * @returns a function that lets the time until its next run pass
 */
export async function startJobAlone (
  t: Test, database: Parts, register: (app: FastifyInstance) => PromiseLike<unknown>
): Promise<(ms: number) => void> {
  mock.timers.enable({ apis: ['setInterval'] })
  t.teardown(() => { mock.timers.reset() })
  const app = Fastify()
  t.teardown(async () => { await app.close() })
  await app.register(fp(async (app) => {
    for (const [name, value] of Object.entries<object>(database)) app.decorate(name, value as never)
  }, { name: 'database' }))
  await register(app)
  await app.ready()
  return (ms) => { mock.timers.tick(ms) }
}
