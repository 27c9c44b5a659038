import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { conditionsOf, STALE_EXAMPLE } from '../http/conditional-requests.ts'
import { NoContent, ref } from '../http/common-schemas.ts'
import { recordWriteContext, writeContext } from '../http/idempotency.ts'
import { sendRecord, sendWriteResult } from '../http/responses.ts'
import { deleteLimits, putLimits } from './commands.ts'
import { LimitsNotFound } from './errors.ts'
import { findLimits } from './queries.ts'
import { LimitsSchema, NewLimitsSchema } from './schemas.ts'

const EXPERIMENTAL = { tags: ['lab'], 'x-stability': 'experimental' }

export const limitRoutes: FastifyPluginAsyncTypebox = async function limitRoutes (app) {
  const { states } = app.lab!

  app.put('/lab/limits', {
    schema: {
      operationId: 'putLimits',
      ...EXPERIMENTAL,
      summary: 'Set limits',
      description: 'Limits the requests of your own account, except those of the lab, in windows of its clock: move ' +
        'the clock to begin the next one. Further requests are 429. All counts begin at 0.',
      body: ref(NewLimitsSchema),
      response: { 200: ref(LimitsSchema) }
    }
  }, async (request, reply) => {
    const { auth: { account }, body: limits } = request
    const input = { account, limits, conditions: conditionsOf(request) }
    const put = await app.commit(putLimits, input, recordWriteContext(request))
    await states.refreshAll(account)
    return sendWriteResult(reply, 200, put)
  })

  app.get('/lab/limits', {
    schema: {
      operationId: 'getLimits',
      ...EXPERIMENTAL,
      summary: 'Get the limits',
      description: 'Returns the limits of your account, with two counters.',
      response: { 200: ref(LimitsSchema) }
    },
    config: { errors: [LimitsNotFound] }
  }, async (request, reply) => {
    const limits = await findLimits(app.read, request.auth.account)
    if (limits === undefined) throw new LimitsNotFound()
    return sendRecord(request, reply, limits)
  })

  app.delete('/lab/limits', {
    schema: {
      operationId: 'deleteLimits',
      ...EXPERIMENTAL,
      summary: 'Delete the limits',
      description: 'Ends the limits of your account.',
      response: { 204: NoContent }
    },
    config: { errors: [LimitsNotFound], examples: { 'If-Match': STALE_EXAMPLE } }
  }, async (request, reply) => {
    const { auth: { account } } = request
    const input = { account, conditions: conditionsOf(request) }
    const deleted = await app.commit(deleteLimits, input, writeContext(request))
    await states.refreshAll(account)
    return sendWriteResult(reply, 204, deleted)
  })
}
