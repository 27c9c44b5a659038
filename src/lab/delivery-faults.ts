import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { LEASE_MS, type ClaimedDelivery } from '../deliveries/claim.ts'
import { webhookIdOf, type AroundCall, type Call } from '../deliveries/delivery-attempt.ts'
import type { WebhookResponse } from '../deliveries/http-client.ts'
import { expediteDelivery, extendLease } from '../deliveries/leases.ts'
import { classifyResponse } from '../deliveries/retry-policy.ts'
import type { AccountStates } from './account-states.ts'
import type { Effect } from './effects.ts'
import { matchFaults, recordHit } from './fault-commands.ts'
import { RESERVED_BYTES, type HeldBytes } from './held-bytes.ts'
import { createReordering, HOLD_MS } from './reordering.ts'
import type { Fault } from './schemas.ts'

/** The operation of faults that hit the calls of webhooks. */
export const WEBHOOK = 'webhook'

const TARGET = { operation: WEBHOOK, isOrdinary: false, keyId: undefined }

/** How far in the past an old signature is: receivers accept five minutes. */
const OLD_MS = 3_600_000

/** Returns what makes the calls of deliveries: faults change some of them. */
export function createAroundCall (app: FastifyInstance, states: AccountStates, held: HeldBytes): AroundCall {
  const reordering = createReordering(async ({ account, webhook: webhookId, id }) => {
    await app.commit(expediteDelivery, { account, webhookId, id }, { account: null }).catch((error: unknown) => {
      app.log.warn({ err: error }, 'cannot send a held delivery; it is sent at the end of its hold')
    })
  })
  return async (delivery, call, stopped) => {
    const { account } = delivery
    if (reordering.takeBack(delivery)) return await call()
    // A hit is an event, which is delivered as well. If it could be hit, one hit would cause the next.
    if (isHit(delivery)) return await call()
    const pass = reordering.passing(delivery)
    const send: Call = async (changes) => {
      const response = await call(changes)
      await pass?.()
      return response
    }
    if (!states.mayHit(account, TARGET)) return await send()
    const requestId = webhookIdOf(delivery)
    const ignores = ({ type }: Effect): boolean => type === 'reorder' && pass !== undefined
    const match = { ...TARGET, account, requestId, isImmediate: () => false, ignores }
    const { record: fault } = await app.commit(matchFaults, match, { account })
    if (fault === null) return await send()
    const onHeld = fault.effect.type === 'reorder' ? reordering.hold(delivery) : undefined
    const onStored = async (): Promise<void> => {
      await onHeld?.()
      await app.commit(recordHit, { account, fault, requestId, operation: WEBHOOK }, { account })
    }
    try {
      return { ...await applyTo({ app, delivery, call: send, stopped, held }, fault), onStored }
    } catch (error) {
      await onStored()
      throw error
    }
  }
}

function isHit ({ body }: ClaimedDelivery): boolean {
  return body?.includes('"type":"fault.hit"') ?? false
}

interface CallContext {
  app: FastifyInstance
  delivery: ClaimedDelivery
  call: Call
  stopped: AbortSignal
  held: HeldBytes
}

async function applyTo (context: CallContext, { id, effect }: Fault): Promise<WebhookResponse> {
  const { call } = context
  switch (effect.type) {
    case 'reset':
      return { error: `Lab fault ${id} prevented the request` }
    case 'delay':
      await delayCall(context, effect.ms)
      return await call()
    case 'lose_answer': {
      const response = await call()
      return classifyResponse(response.status) === 'accepted'
        ? { error: `Lab fault ${id} lost the response` }
        : response
    }
    case 'reorder':
      return { postponedMs: HOLD_MS }
    case 'redirect':
      return {
        status: 302, answer: { fields: [{ name: 'location', value: effect.location }], body: '', truncated: false }
      }
    case 'corrupt':
      return await corruptCall(call, effect.how)
    default:
      return await call()
  }
}

/** Delays a call, which occupies a slot of the process meanwhile, unless the account delays too many already. */
async function delayCall ({ app, delivery, stopped, held }: CallContext, ms: number): Promise<void> {
  const { account, webhook: webhookId, id, lease } = delivery
  const release = held.reserve(account, RESERVED_BYTES)
  if (release === undefined) return
  try {
    const until = Date.now() + ms + LEASE_MS
    await app.commit(extendLease, { account, webhookId, id, lease, until }, { account: null })
    await sleep(ms, undefined, { signal: stopped })
  } finally {
    release()
  }
}

async function corruptCall (call: Call, how: string): Promise<WebhookResponse> {
  if (how === 'bad_signature') return await call({ secrets: [`whsec_${randomBytes(24).toString('base64')}`] })
  if (how === 'old_timestamp') return await call({ signedAt: new Date(Date.now() - OLD_MS) })
  const response = await call()
  if (how === 'duplicate') await call()
  return response
}
