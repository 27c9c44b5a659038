/** The signals that ask a process to stop. */
export const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Time in which further signals count as the first one. Ctrl-C reaches the process from the terminal and from npm, and
 * a closed terminal ends npm as well.
 */
export const SAME_REQUEST_MS = 2_000
