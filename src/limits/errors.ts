import { defineError } from '../errors.ts'

export const LimitsNotFound = defineError(
  'limits_not_found', 'Your account has no limits. Set them with PUT /lab/limits.', 404)
