import type { Fixture } from '../support/fixture.ts'

export const fixture: Fixture = {
  operations: {
    'get /events': ['listEvents', 'events', 200, 'stream_limit_reached', 'events_expired']
  },
  errors: {
    stream_limit_reached: { status: 409, elsewhere: 'test/events/events.test.ts: takes streams that stay open' },
    events_expired: { status: 410, elsewhere: 'takes events older than they are held' }
  }
}
