import { Webhook, WebhookVerificationError as VerificationError } from 'standardwebhooks'
import type { Event } from '../generated/client/openapi.ts'
import { WebhookVerificationError } from './errors.ts'
import { readField, type HeadersLike } from './header-fields.ts'

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
  body: string | Uint8Array | ArrayBuffer
  /** The header fields of the request, as Node or Fetch has them. */
  headers: HeadersLike
}

const FIELDS = ['webhook-id', 'webhook-timestamp', 'webhook-signature']

/**
 * Returns the event of a request to a webhook, after a check of its signature and of its age. A webhook can receive an
 * event more than once: the header field `webhook-id` is the same each time.
 *
 * @throws {WebhookVerificationError} if no secret made the signature, or if the request is older than five minutes
 */
export function verifyWebhook (received: ReceivedWebhook): Event | TestEvent {
  const { secret, body, headers } = received
  const secrets = [secret].flat()
  if (secrets.length === 0 || !secrets.every((one) => typeof one === 'string' && one !== '')) {
    throw new TypeError('verifyWebhook needs a secret')
  }
  const text = textOf(body)
  const fields = Object.fromEntries(FIELDS.map((name) => [name, readField(headers, name) ?? '']))
  let failure: unknown
  for (const one of secrets) {
    try {
      return new Webhook(one).verify(text, fields) as Event | TestEvent
    } catch (error) {
      if (!(error instanceof VerificationError)) throw error
      failure = error
    }
  }
  throw new WebhookVerificationError((failure as Error).message)
}

/** Returns the text of a body. The bytes can come from another realm, as in the tests of pages. */
function textOf (body: unknown): string {
  if (typeof body === 'string') return body
  const isBytes = ArrayBuffer.isView(body) || Object.prototype.toString.call(body) === '[object ArrayBuffer]'
  if (!isBytes) throw new TypeError('verifyWebhook needs the body as it was received, before any parsing')
  return new TextDecoder().decode(body as Uint8Array)
}
