import { defineError } from '../errors.ts'

export const SignupClosed = defineError(
  'signup_closed', 'This service does not open accounts. Ask its operator for an API key.', 403)
export const ApiKeyNotFound = defineError('api_key_not_found', 'Your account has no API key with this id.', 404)
export const ApiKeyLimitReached = defineError(
  'api_key_limit_reached', 'Your account has %s API keys, which is the maximum. Revoke one first.', 409, 100)
export const LastApiKey = defineError(
  'last_api_key', 'This is the last unexpired key that can write. Create another key before you revoke it.', 409)
