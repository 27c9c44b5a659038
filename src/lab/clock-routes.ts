import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Unauthorized } from '../errors.ts'
import { conditionsOf } from '../http/conditional-requests.ts'
import { ref } from '../http/common-schemas.ts'
import { recordWriteContext } from '../http/idempotency.ts'
import { sendRecord, sendWriteResult } from '../http/responses.ts'
import { advanceClock, clockEtag } from './clock-commands.ts'
import { findClockOffset } from './queries.ts'
import type { Advance } from './rules.ts'
import { AdvancedClockSchema, NewClockAdvanceSchema, ClockSchema, type NewClockAdvance } from './schemas.ts'

const EXPERIMENTAL = { tags: ['lab'], 'x-stability': 'experimental' }

export const clockRoutes: FastifyPluginAsyncTypebox = async function clockRoutes (app) {
  app.get('/lab/clock', {
    schema: {
      operationId: 'getClock',
      ...EXPERIMENTAL,
      summary: 'Get the clock',
      description: 'Returns how far the clock of your account is ahead of real time.',
      response: { 200: ref(ClockSchema) }
    }
  }, async (request, reply) => {
    const offsetSeconds = await findClockOffset(app.read, request.auth.account)
    if (offsetSeconds === undefined) throw new Unauthorized('The account of this API key was deleted')
    return sendRecord(request, reply, { record: JSON.stringify({ offsetSeconds }), etag: clockEtag(offsetSeconds) })
  })

  app.post('/lab/clock/advance', {
    schema: {
      operationId: 'advanceClock',
      ...EXPERIMENTAL,
      summary: 'Move the clock',
      description: 'Moves the clock of your account ahead, by `seconds` or `to` a time. It never goes back. ' +
        'These follow the clock: times of records and events, the expiry of API keys and idempotency keys, retries ' +
        'of webhooks, the retention of events, and sunsets.',
      body: ref(NewClockAdvanceSchema),
      response: { 200: ref(AdvancedClockSchema) }
    }
  }, async (request, reply) => {
    const { auth: { account }, idempotencyKey } = request
    const input = { account, advance: advanceOf(request.body), conditions: conditionsOf(request), idempotencyKey }
    const moved = await app.commit(advanceClock, input, recordWriteContext(request))
    app.clocks.advance(account, moved.record.offsetSeconds * 1000)
    await app.siblings?.tell('lab', account)
    await app.deleteExpiredOf(account)
    return sendWriteResult(reply, 200, moved)
  })
}

function advanceOf ({ seconds, to }: NewClockAdvance): Advance {
  return seconds === undefined ? { to: Date.parse(to!) } : { seconds }
}
