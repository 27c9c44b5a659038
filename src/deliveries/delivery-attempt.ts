import type { ClaimedDelivery } from './claim.ts'
import type { Completion } from './complete.ts'
import type { WebhookClient, WebhookRequest, WebhookResponse } from './http-client.ts'
import { classifyResponse, nextAttemptAt, retryAfterOf } from './retry-policy.ts'

/** Makes the call of a delivery. The parameter `call` sends the request, or one that differs in some parts. */
export type AroundCall = (delivery: ClaimedDelivery, call: Call, stopped: AbortSignal) => Promise<WebhookResponse>

export type Call = (changes?: Partial<Pick<WebhookRequest, 'secrets' | 'signedAt'>>) => Promise<WebhookResponse>

/** Time after which a delivery is due again whose call failed here, as by a database that is overloaded, in ms. */
const RETRY_MS = 1_000

/** @returns `undefined` when the request was aborted, because the worker stops */
export async function sendDelivery (
  client: WebhookClient, delivery: ClaimedDelivery, stopped: AbortSignal, aroundCall?: AroundCall
): Promise<WebhookResponse | undefined> {
  const { url, body, secrets } = delivery
  if (body === undefined) return { error: 'The event is no longer stored' }
  try {
    const call: Call = async (changes) =>
      await client.send({ url, id: webhookIdOf(delivery), body, secrets, ...changes }, stopped)
    return await (aroundCall === undefined ? call() : aroundCall(delivery, call, stopped))
  } catch {
    return stopped.aborted ? undefined : { postponedMs: RETRY_MS }
  }
}

/** Returns the header `webhook-id`: unique across accounts, and the same whenever the event is sent. */
export function webhookIdOf ({ account, event, id }: ClaimedDelivery): string {
  return event === 0 ? `evt_${account}_test_${id}` : `evt_${account}_${event}`
}

/**
 * Returns the completion of a delivery that was not sent, or whose request was aborted.
 *
 * @param postponedMs time after which it is due; by default, it is due before all others
 */
export function returnedCompletion (
  { id, account, webhook, lease, message, url }: ClaimedDelivery, postponedMs?: number
): Completion {
  const dueAt = postponedMs === undefined ? {} : { dueAt: new Date(Date.now() + postponedMs).toISOString() }
  return { id, account, webhookId: webhook, lease, message, url, result: 'returned', ...dueAt }
}

export interface AttemptContext {
  /** Time in ms at which the request was sent. */
  startedAt: number
  /** Time until the response or the error. */
  durationMs: number
  /** Pauses between attempts; `RETRY_SCHEDULE` by default. */
  retrySchedule?: readonly number[] | undefined
}

/** Returns the completion of a delivery that was sent: accepted, gone, retried later or exhausted; or postponed. */
export function sentCompletion (
  delivery: ClaimedDelivery, response: WebhookResponse, context: AttemptContext
): Completion {
  const { status, error, request, answer, postponedMs } = response
  if (postponedMs !== undefined) return returnedCompletion(delivery, postponedMs)
  const { startedAt, durationMs } = context
  const now = Date.now()
  const responseClass = classifyResponse(status)
  const nextAt = responseClass === 'refused' ? retryTime(delivery, response, now, context) : undefined
  return {
    ...returnedCompletion(delivery),
    url: delivery.body === undefined ? undefined : delivery.url,
    result: responseClass !== 'refused' ? responseClass : nextAt === undefined ? 'exhausted' : 'retry',
    attempt: {
      eventId: delivery.event,
      at: new Date(startedAt).toISOString(),
      ...(status === undefined ? {} : { status }),
      ...(error === undefined ? {} : { error }),
      durationMs,
      ...(nextAt === undefined ? {} : { nextTryAt: new Date(nextAt).toISOString() }),
      ...(request === undefined ? {} : { request }),
      ...(answer === undefined ? {} : { answer }),
      // Any other body is that of a stored event.
      ...(delivery.event === 0 && request !== undefined ? { body: delivery.body } : {})
    }
  }
}

/** @returns `undefined` without another attempt: a test, and an event that is no longer stored, get only one */
function retryTime (
  { attempts, expiresAt, event, body }: ClaimedDelivery, { retryAfter }: WebhookResponse, now: number,
  { retrySchedule }: AttemptContext
): number | undefined {
  if (event === 0 || body === undefined) return undefined
  return nextAttemptAt({
    attempts, now, expiresAt, retryAfter: retryAfterOf(retryAfter, now), random: Math.random(), schedule: retrySchedule
  })
}
