import type { FastifyInstance, FastifyPluginAsync, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { createRecorder, type Recorder } from './recorder.ts'
import { captureRequest } from './captured-request.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Records requests; only where the setting LAB is true. */
    recorder?: Recorder
  }
}

/** Records the requests of accounts whose journal is on. Those of other accounts cost a look-up. */
export const journalHooks: FastifyPluginAsync = fp(async function journalHooks (app: FastifyInstance) {
  const { admission, clocks, commit, log, siblings } = app
  const own = createRecorder({ commit, log, charge: (account, began) => { admission.charge(account, began) } })
  siblings?.onCall('journal', async (account) => { await own.recorded(account as number) })
  const recorder: Recorder = {
    ...own,
    async recorded (account) { await Promise.all([own.recorded(account), siblings?.tell('journal', account)]) }
  }
  app.decorate('recorder', recorder)
  app.addHook('onRequest', (request, reply, done) => {
    const { account } = request.auth
    const keep = app.lab!.states.journalOf(account)
    const operation = keep === undefined ? undefined : recordedOperationOf(request)
    if (keep !== undefined && operation !== undefined) {
      captureRequest(request, reply, { operation, offsetMs: clocks.offsetOf(account) }, (captured) => {
        recorder.add(account, captured, keep)
      })
    }
    done()
  })
  app.addHook('onClose', recorder.close)
}, { name: 'journal-hooks', dependencies: ['database', 'authentication'] })

/** Returns the `operationId` of a request, unless it is one of the lab. */
function recordedOperationOf ({ routeOptions: { schema } }: FastifyRequest): string | undefined {
  const { operationId, tags = [] } = (schema ?? {}) as { operationId?: string, tags?: string[] }
  return tags.includes('lab') ? undefined : operationId
}
