/** Where an account's feed stands: see `Stretch`. */
export interface FeedState {
  newest: number
  oldest: number | undefined
}

/**
 * The position a reader begins after. Without one it is before the oldest event held; one beyond the
 * newest event is the newest.
 *
 * @returns `expired` when events after the position are no longer held
 */
export function resolveStartPosition ({ newest, oldest }: FeedState, after: number | undefined): number | 'expired' {
  const first = oldest ?? newest + 1
  if (after === undefined) return first - 1
  if (after >= newest) return newest
  return after < first - 1 ? 'expired' : after
}
