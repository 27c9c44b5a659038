/** The range of an account's stored events: see `EventPage`. */
export interface FeedState {
  newest: number
  oldest: number | undefined
}

/**
 * Returns the position after which a client starts to read: without a position, before the oldest stored event; for a
 * position beyond the newest event, after the newest.
 *
 * @returns `expired` when events after the position are no longer stored
 */
export function resolveStartPosition ({ newest, oldest }: FeedState, after: number | undefined): number | 'expired' {
  const first = oldest ?? newest + 1
  if (after === undefined) return first - 1
  if (after >= newest) return newest
  return after < first - 1 ? 'expired' : after
}

/** Says which events are stored, for the error of a request for older ones. */
export function describeStored ({ oldest, newest }: FeedState): string {
  return oldest === undefined ? `none is stored; the newest was ${newest}` : `the oldest stored event is ${oldest}`
}
