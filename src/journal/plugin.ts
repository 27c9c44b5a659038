import type { FastifyInstance, FastifyPluginAsync, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { createRecorder, type Recorder } from './recorder.ts'
import { recordRequest } from './recording.ts'

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
    if (app.lab!.states.hasJournal(account) && isRecorded(request)) {
      recordRequest(request, reply, clocks.offsetOf(account), (ended) => { recorder.add(account, ended) })
    }
    done()
  })
  app.addHook('onClose', recorder.close)
}, { name: 'journal-hooks', dependencies: ['database', 'authentication'] })

function isRecorded ({ routeOptions: { schema } }: FastifyRequest): boolean {
  const { operationId, tags = [] } = (schema ?? {}) as { operationId?: string, tags?: string[] }
  return operationId !== undefined && !tags.includes('lab')
}
