import { defineError } from '../errors.ts'

export const EventsExpired = defineError(
  'events_expired',
  'The events after this position have expired: %s. Read the lists again and follow the feed from Event-Id.', 410,
  'the oldest retained event is 1200')
