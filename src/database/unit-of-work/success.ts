/** The result of a command that changed something, or found nothing to change. */
export interface CommandSuccess<Record> {
  record: Record
  etag?: string | undefined
  /** The events of the change for the account's feed; none when nothing changed. */
  events?: NewEvent[]
  /** What other parts of the service are told of after COMMIT, beside the events. */
  changes?: Changes
}

/** Ids of what changed, by channel. A channel without ids says only that something changed. */
export type Changes = Record<string, number[]>

/** An event before the event log gives it a number and a time. */
export interface NewEvent {
  type: string
  /** Whole records as they are after the change. */
  data: object
  /** The account of its feed, where that is not the writer's. */
  account?: number
  /** Identifies, for its subscribers, what follows the deliveries of this event. */
  tracks?: number
}

/** Adds changes to others, channel by channel. */
export function mergeChanges (into: Changes, from: Changes = {}): void {
  for (const [channel, ids] of Object.entries(from)) (into[channel] ??= []).push(...ids)
}
