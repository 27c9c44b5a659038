import type { EventLog } from '../../src/database/group-commit/command.ts'

/** Writes no events. */
export const NO_EVENTS: EventLog = {
  hasSubscriber: () => 'false',
  subscribers: '',
  write: () => ({ statements: [], changesOf: () => ({}) })
}
