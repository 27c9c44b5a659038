export interface Progress {
  update: (done: number) => void
  stop: () => void
}

/** Interval between two lines if standard error is not a terminal. */
const LINE_INTERVAL_MS = 1_000

/** Interval between two states of the bar. */
const BAR_INTERVAL_MS = 100

/** Characters of the bar. */
const BAR_WIDTH = 24

/** Clears the line of the cursor in a terminal. */
const CLEAR_LINE = '\r\x1b[K'

/** Shows progress on standard error: a bar in a terminal, otherwise a line at intervals. */
export function startProgress (unit: string, total: number): Progress {
  const terminal = process.stderr.isTTY === true
  const started = performance.now()
  let done = 0
  let shown: { done: number, at: number } | undefined

  const show = (): void => {
    shown = { done, at: performance.now() }
    const text = describe(done, total, unit, shown.at - started)
    process.stderr.write(terminal ? `${CLEAR_LINE}${bar(done / total)} ${text}` : `${text}\n`)
  }
  show()
  return {
    update (now) {
      done = now
      if (performance.now() - shown!.at >= (terminal ? BAR_INTERVAL_MS : LINE_INTERVAL_MS)) show()
    },
    stop () {
      if (shown!.done !== done) show()
      if (terminal) process.stderr.write('\n')
    }
  }
}

function describe (done: number, total: number, unit: string, elapsedMs: number): string {
  const perSecond = done / Math.max(elapsedMs / 1_000, 0.001)
  const rate = done === 0 ? '' : `, ${Math.round(perSecond)}/s`
  const left = done === 0 || done === total ? '' : `, ${formatDuration(Math.ceil((total - done) / perSecond))} left`
  return `${done} of ${total} ${unit}${rate}${left}`
}

function bar (share: number): string {
  const full = Math.round(share * BAR_WIDTH)
  return '='.repeat(full) + '-'.repeat(BAR_WIDTH - full)
}

function formatDuration (seconds: number): string {
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}
