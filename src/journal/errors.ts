import { defineError } from '../errors.ts'

export const JournalNotFound = defineError(
  'journal_not_found', 'The journal of your account is off. Turn it on with PUT /lab/journal.', 404)
export const RequestNotFound = defineError('request_not_found', 'Your journal has no request with this id.', 404)
