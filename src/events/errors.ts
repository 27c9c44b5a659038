import { defineError } from '../errors.ts'

export const StreamLimitReached = defineError(
  'stream_limit_reached', 'The maximum number of open event streams of your account is %s. Close one first.', 409, 100)
export const EventsExpired = defineError(
  'events_expired',
  'You asked for events that have expired: %s. To follow events, read the lists again and start from Event-Id.', 410,
  'the oldest retained event is 1200')
