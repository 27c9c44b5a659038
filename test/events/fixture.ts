import type { Fixture } from '../support/fixture.ts'

export const fixture: Fixture = {
  operations: {
    'get /events': ['listEvents', 'events', 200, 'events_expired']
  },
  errors: {
    events_expired: { status: 410, elsewhere: 'takes events older than they are held' }
  }
}
