import { Webhook } from 'standardwebhooks'
import type { Event } from '../generated/client/openapi.ts'

export { WebhookVerificationError } from 'standardwebhooks'

/** The event that `testWebhook` sends. It is in no feed. */
export interface TestEvent {
  id: 0
  type: 'webhook.test'
  timestamp: string
  data: { webhookId: number }
}

export interface ReceivedWebhook {
  /** The secret of the webhook, or several while receivers change to a new one. */
  secret: string | string[]
  /** The body of the request as it was received. Another serialization of its JSON has another signature. */
  body: string | Uint8Array
  /** The header fields of the request, as Node or Fetch has them. */
  headers: Headers | Record<string, string | string[] | undefined>
}

/**
 * Returns the event of a request to a webhook, after a check of its signature and of its age. A webhook can receive an
 * event more than once: the header field `webhook-id` is the same each time.
 *
 * @throws {WebhookVerificationError} if no secret made the signature, or if the request is older than five minutes
 */
export function verifyWebhook ({ secret, body, headers }: ReceivedWebhook): Event | TestEvent {
  const text = typeof body === 'string' ? body : new TextDecoder().decode(body)
  const fields = headers instanceof Headers ? Object.fromEntries(headers) : headers as Record<string, string>
  const [first, ...others] = [secret].flat().map((value) => new Webhook(value))
  if (first === undefined) throw new TypeError('verifyWebhook needs a secret')
  for (const webhook of others) {
    try {
      return webhook.verify(text, fields) as Event | TestEvent
    } catch { /* Another secret can match. */ }
  }
  return first.verify(text, fields) as Event | TestEvent
}
