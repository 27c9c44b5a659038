import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { EventStream } from '../events/followers.ts'
import { EVENT_STREAM, wantsEventStream } from '../http/content-negotiation.ts'
import type { AccountStates } from './account-states.ts'
import type { Effect } from './effects.ts'
import { INJECTED } from './errors.ts'
import { matchFaults, recordHit } from './fault-commands.ts'
import { changeAnswer, ENDED, skip } from './answers.ts'
import type { HeldBytes } from './held-bytes.ts'
import type { Fault } from './schemas.ts'
import { changeStream } from './streams.ts'

interface RequestHit {
  fault: Fault
  /** Whether the event of the hit is written, or being written. */
  isRecorded: boolean
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The fault that hits the request. */
    hit: RequestHit | null
  }
}

/** Tags of the operations that a fault of the operation `*` does not match. */
const SPARED_TAGS = ['lab', 'accounts']

/**
 * Adds the faults to all requests of a scope: `onRequest` decides after authorization and before the body is read
 * whether a fault hits the request, and `onSend` changes the answer. A request whose account has no faults that could
 * match it waits for nothing.
 */
export function addRequestFaults (app: FastifyInstance, states: AccountStates, held: HeldBytes): void {
  app.decorateRequest('hit', null)

  app.addHook('onRequest', (request, reply, done) => {
    if (!states.hasFaults(request.auth.account)) return done()
    const { auth: { account, key: keyId }, id: requestId } = request
    // Not from `onRoute`, whose hooks run here before those of inner scopes add the tags.
    const { schema: { operationId: operation, tags = [] } = {}, config } = request.routeOptions
    if (operation === undefined) return done()
    const target = { operation, isOrdinary: !tags.some((tag) => SPARED_TAGS.includes(tag)), keyId }
    if (!states.mayHit(account, target)) return done()
    const hasStream = config.stream === true || config.representations?.[EVENT_STREAM] !== undefined
    const isStream = hasStream && request.method === 'GET' && wantsEventStream(request)
    const isImmediate = writesEventAtOnce(isStream)
    const match = { ...target, account, requestId, isImmediate }
    app.commit(matchFaults, match, { account }).then(({ record: fault }) => {
      if (fault === null) return done()
      request.hit = { fault, isRecorded: isImmediate(fault.effect) }
      begin(reply, fault, isStream, done)
    }, done)
  })

  app.addHook('onSend', (request, reply, payload, done) => {
    const { hit } = request
    if (hit === null || hit.fault.effect.type === 'refuse') return done(null, payload)
    finish(request, reply, payload, hit, held).then((answer) => {
      if (answer !== ENDED) return done(null, answer)
      reply.hijack()
      reply.raw.socket?.destroy()
    }, done)
  })
}

/** An effect that comes before every event of the request writes its own event with the match. */
function writesEventAtOnce (isStream: boolean): (effect: Effect) => boolean {
  return ({ type }) => type === 'refuse' || (isStream ? type === 'delay' || type === 'trickle' : type === 'reset')
}

/** Ends a request that is not to be handled, or lets it go on. */
function begin (
  reply: FastifyReply, { effect, id }: Fault, isStream: boolean, done: (error?: Error) => void
): void {
  reply.header('petstore-fault', id)
  if (effect.type === 'reset' && !isStream) {
    // Nothing more happens to the request: `done` is never called.
    reply.hijack()
    // Not the socket of the request: `inject` has one for the response alone, whose end is an error for its caller.
    reply.raw.socket?.destroy()
  } else if (effect.type === 'refuse') {
    reply.header('retry-after', effect.retryAfter ?? 1)
    done(new INJECTED[effect.status]!(id))
  } else {
    done()
  }
}

/** Tells whether a stream begins under an effect. One that is cut before its first byte is an answer as any other. */
function changesStream (effect: Effect): boolean {
  return effect.type === 'truncate' ? effect.bytes > 0 : effect.type !== 'replace_answer'
}

/** Changes the answer of a request that was handled. */
async function finish (
  request: FastifyRequest, reply: FastifyReply, payload: unknown, hit: RequestHit, held: HeldBytes
): Promise<unknown> {
  const { id: requestId, server, auth: { account } } = request
  const { fault } = hit
  const writeEvent = async (): Promise<void> => {
    if (hit.isRecorded) return
    hit.isRecorded = true
    const input = { account, fault, requestId, operation: request.routeOptions.schema!.operationId! }
    // The request may have deleted the account. The effect takes place in any case.
    await server.commit(recordHit, input, { account }).catch((error: unknown) => {
      request.log.info({ err: error }, 'cannot record that a fault hit a request')
    })
  }
  if (payload instanceof EventStream && changesStream(fault.effect)) {
    const reserve = (bytes: number): (() => void) | undefined => held.reserve(account, bytes)
    const changed = changeStream(payload, fault.effect, { socket: reply.raw.socket!, writeEvent, reserve })
    if (changed !== undefined) return changed
    await writeEvent()
    return skip(reply, fault.id, payload)
  }
  await writeEvent()
  return await changeAnswer(request, reply, payload, fault, held)
}
