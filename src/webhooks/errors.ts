import { defineError } from '../errors.ts'

export const WebhookNotFound = defineError('webhook_not_found', 'Your store has no webhook with this id.', 404)
export const AttemptNotFound = defineError(
  'attempt_not_found', 'The webhook has no attempt with this id. It keeps the last 1,000.', 404)
export const UnknownEvent = defineError(
  'unknown_event', 'Your store has no event after %s, which is its newest.', 409, 42)
export const WebhookLimitReached = defineError(
  'webhook_limit_reached', 'Your account has %s webhooks, which is the maximum. Delete one first.', 409, 20)
