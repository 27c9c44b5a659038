import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { timeText } from '../database/account-clocks.ts'
import { ValidationFailed } from '../errors.ts'
import { conditionsOf, STALE_EXAMPLE } from '../http/conditional-requests.ts'
import { arrayOf, NoContent, ref } from '../http/common-schemas.ts'
import { writeContext } from '../http/idempotency.ts'
import { pageLinks, pageRequest } from '../http/pagination.ts'
import { sendFound } from '../http/record-routes.ts'
import { sendPage, sendWriteResult } from '../http/responses.ts'
import { WEBHOOK } from './delivery-faults.ts'
import { isEffectOfAnswers, isEffectOfCalls, type Effect } from './effects.ts'
import { FaultLimitReached, FaultNotFound, UnknownApiKey } from './errors.ts'
import { createFault, createScenario, deleteFault, deleteFaults } from './fault-commands.ts'
import { findFault, listFaults } from './queries.ts'
import {
  FaultParams, FaultSchema, LabQuery, NewFaultSchema, NewScenarioSchema, type NewFault
} from './schemas.ts'

/** The fault that the example of createFault creates in the demo store, which has one. */
const CREATED = 2

const EXPERIMENTAL = { tags: ['lab'], 'x-stability': 'experimental' }

export const faultRoutes: FastifyPluginAsyncTypebox = async function faultRoutes (app) {
  const { states, operations } = app.lab!

  app.get('/lab/faults', {
    schema: {
      operationId: 'listFaults',
      ...EXPERIMENTAL,
      summary: 'List faults',
      description: 'Lists the faults that can still hit requests, by id, a page at a time.',
      querystring: LabQuery,
      response: { 200: arrayOf(FaultSchema) }
    }
  }, async (request, reply) => {
    const { auth: { account }, query } = request
    const page = pageRequest({ ...query, openAt: timeText(app.clocks.now(account)) })
    return sendPage(request, reply, await listFaults(app.read, account, page))
  })

  app.post('/lab/faults', {
    schema: {
      operationId: 'createFault',
      ...EXPERIMENTAL,
      summary: 'Inject a fault',
      description: 'Makes the service misbehave. A fault lets `after` matching requests pass, hits the next `times`, ' +
        'and then ends. With `forSeconds` it ends by the clock of your account; with `rate` it hits a share of the ' +
        'requests. If several faults match, the oldest one applies. Each hit writes an event.',
      body: ref(NewFaultSchema),
      response: { 201: ref(FaultSchema) }
    },
    config: { errors: [UnknownApiKey, FaultLimitReached] },
    // The union of effects is no work for a serializer: the record contains what was validated.
    serializerCompiler: () => (data) => JSON.stringify(data)
  }, async (request, reply) => {
    const { auth: { account } } = request
    const fault = request.body as NewFault
    checkFault(operations, fault)
    const created = await app.commit(createFault, { account, fault }, writeContext(request))
    await states.refreshAll(account)
    return sendWriteResult(reply, 201, created, `/lab/faults/${created.record.id}`)
  })

  app.post('/lab/scenarios', {
    schema: {
      operationId: 'createScenario',
      ...EXPERIMENTAL,
      summary: 'Inject several faults',
      description: 'Creates up to 20 faults together: all, or none if one of them is refused. Where several match a ' +
        'request, the first one in the list applies.',
      body: ref(NewScenarioSchema),
      response: { 201: arrayOf(FaultSchema) }
    },
    config: { errors: [UnknownApiKey, FaultLimitReached] },
    serializerCompiler: () => (data) => JSON.stringify(data)
  }, async (request, reply) => {
    const { auth: { account } } = request
    const { faults } = request.body
    faults.forEach((fault, i) => { checkFault(operations, fault, `Fault ${i + 1} of the scenario: `) })
    const created = await app.commit(createScenario, { account, faults }, writeContext(request))
    await states.refreshAll(account)
    return sendWriteResult(reply, 201, created)
  })

  app.delete('/lab/faults', {
    schema: {
      operationId: 'deleteFaults',
      ...EXPERIMENTAL,
      summary: 'Delete all faults',
      description: 'Ends all faults of the account.',
      response: { 204: NoContent }
    },
    config: { examples: { 'If-Match': STALE_EXAMPLE } }
  }, async (request, reply) => {
    const { auth: { account } } = request
    const link = (next: number | null): string => pageLinks(request, next, 'cursor')
    const input = { account, conditions: conditionsOf(request), link }
    const deleted = await app.commit(deleteFaults, input, writeContext(request))
    await states.refreshAll(account)
    return sendWriteResult(reply, 204, deleted)
  })

  app.get('/lab/faults/:faultId', {
    schema: {
      operationId: 'getFault',
      ...EXPERIMENTAL,
      summary: 'Get a fault',
      description: 'Returns one fault with its counters, also after it has hit all its requests.',
      params: FaultParams,
      response: { 200: ref(FaultSchema) }
    },
    config: { errors: [FaultNotFound] }
  }, async (request, reply) => await sendFound(request, reply, findFault, request.params.faultId, FaultNotFound))

  app.delete('/lab/faults/:faultId', {
    schema: {
      operationId: 'deleteFault',
      ...EXPERIMENTAL,
      summary: 'Delete a fault',
      description: 'Ends a fault before it has hit all its requests.',
      params: FaultParams,
      response: { 204: NoContent }
    },
    config: { errors: [FaultNotFound], examples: { faultId: CREATED } }
  }, async (request, reply) => {
    const { auth: { account }, params: { faultId } } = request
    const input = { account, faultId, conditions: conditionsOf(request) }
    const deleted = await app.commit(deleteFault, input, writeContext(request))
    await states.refreshAll(account)
    return sendWriteResult(reply, 204, deleted)
  })
}

/** @throws ValidationFailed when the fault could never hit a request, or says two things at once */
function checkFault (operations: Set<string>, fault: NewFault, where = ''): void {
  const problem = problemOfCombination(fault) ?? problemOfOperation(operations, fault)
  if (problem !== undefined) throw new ValidationFailed(where + problem)
}

function problemOfCombination ({ times, forSeconds, rate, seed }: NewFault): string | undefined {
  if (times !== undefined && forSeconds !== undefined) {
    return 'forSeconds must be left out with times: a fault ends after a number of hits or after a time'
  }
  return seed !== undefined && rate === undefined ? 'seed must be left out without rate' : undefined
}

function problemOfOperation (operations: Set<string>, { operation, effect, keyId }: NewFault): string | undefined {
  if (operation === WEBHOOK) {
    return keyId === undefined
      ? problemOfCallEffect(effect)
      : 'keyId must be left out with "operation": "webhook": receivers get no API key'
  }
  if (operation !== '*' && !operations.has(operation)) {
    return 'operation must be the operationId of an operation that needs an API key, such as placeOrder, or * or ' +
      'webhook'
  }
  if (isEffectOfAnswers(effect)) return undefined
  return effect.type === 'corrupt'
    ? 'effect.how bad_signature, old_timestamp and duplicate need "operation": "webhook"'
    : 'effect.type reorder and redirect need "operation": "webhook"'
}

function problemOfCallEffect (effect: Effect): string | undefined {
  if (isEffectOfCalls(effect)) return undefined
  return effect.type === 'corrupt'
    ? 'With "operation": "webhook", effect.how must be bad_signature, old_timestamp or duplicate'
    : 'With "operation": "webhook", effect.type must be delay, reset, lose_answer, corrupt, reorder or redirect'
}
