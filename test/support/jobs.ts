import Fastify, { type FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { Test } from 'tap'

type Parts = Partial<Pick<FastifyInstance, 'commit' | 'clocks' | 'read'>>

/** The longest interval of Node. */
const NEVER_MS = 2 ** 31 - 1

/**
 * Starts an app with nothing but a plugin with a job. Its timer does not run by itself.
 *
 * Not by the fake timers of Node 20: ending one that an earlier test has left removes that of a later test.
 *
 * @param register registers the plugin
 * @param database what the job uses of the database plugin
 * @returns a function that runs the jobs with an interval of some ms once
 */
export async function startJobAlone (
  t: Test, database: Parts, register: (app: FastifyInstance) => PromiseLike<unknown>
): Promise<(ms: number) => void> {
  const { setInterval: start } = globalThis
  const timers: Array<{ run: () => void, ms: number | undefined }> = []
  globalThis.setInterval = ((run: () => void, ms?: number) => {
    timers.push({ run, ms })
    return start(run, NEVER_MS)
  }) as typeof setInterval
  const app = Fastify()
  t.teardown(async () => { await app.close() })
  try {
    await app.register(fp(async (app) => {
      for (const [name, value] of Object.entries<object>(database)) app.decorate(name, value as never)
    }, { name: 'database' }))
    await register(app)
    await app.ready()
  } finally {
    globalThis.setInterval = start
  }
  return (ms) => { for (const timer of timers) if (timer.ms === ms) timer.run() }
}
