// Every time of the exam, in ms if not said otherwise. A verdict compares times only with these margins, which are far
// longer than what a busy machine adds to a pause. All others are events that the exam waits for.

/** What each task tells the client to use as its time-out. A busy machine responds much sooner. */
export const TIMEOUT_MS = 5_000

/** Within this time the client must have given up a silent response: it has time for a few attempts. */
export const GIVE_UP_MS = 4 * TIMEOUT_MS

/** Ends a task that hangs. Clients that repeat with patience give up sooner. */
export const TASK_LIMIT_MS = 60_000

/** Ends a wait for the service, which hangs then. */
export const SERVICE_LIMIT_MS = 120_000

/** Time for a client to end by itself when it has no more tasks. */
export const END_MS = 1_000

/** How much earlier than asked a request may come: timers and clocks are rounded. */
export const EARLY_MARGIN_MS = 50

/** The `Retry-After` of the exam, in seconds: longer than the first pause of a client that does not read it. */
export const RETRY_AFTER_S = 2

/** A window of the limits, in seconds: longer than the client needs to use it up. */
export const WINDOW_S = 3

/** How long a response is held back while the exam changes a record. Doubled if that was too short. */
export const HOLD_MS = 2_000

/** How long each page is held back, so that records come and go between two pages. */
export const PAGE_DELAY_MS = 100

/** Attempts after which a client counts as one that never stops. */
export const MAX_ATTEMPTS = 20

/** Number of clients that fail at the same moment. With fewer, clients with random pauses could look in step. */
export const CLIENTS_AT_ONCE = 8

/**
 * The pauses of most clients in step differ by less than the second share of them: by what the machine adds. Below the
 * first share the paper is held again, because a busy machine can add more, and small random shares can be so close by
 * chance. Clients whose pauses are half random are never below it.
 */
export const STEP_DOUBT_SHARE = 0.09
export const STEP_SHARE = 0.07
export const STEP_ATTEMPTS = 3

/** How much longer the later pauses must be than the earlier ones, on average over all clients: a share of them. */
export const GROWTH_SHARE = 0.2

/** Clients that pause for less than this in all do not wait. */
export const LEAST_WAITING_MS = 200
