import { defineError } from '../errors.ts'

export const StreamLimitReached = defineError(
  'stream_limit_reached', 'Your account has %s event streams open, which is the maximum. Close one first.', 409, 100)
export const EventsExpired = defineError(
  'events_expired',
  'The events after this position have expired: %s. Read the lists again and follow the events from Event-Id.', 410,
  'the oldest retained event is 1200')
