import { defineError } from '../errors.ts'

export const WebhookNotFound = defineError('webhook_not_found', 'Your store has no webhook with this id.', 404)
export const WebhookLimitReached = defineError(
  'webhook_limit_reached', 'Your account has %s webhooks, which is the maximum. Delete one first.', 409, 20)
