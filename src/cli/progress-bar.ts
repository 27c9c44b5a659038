import cliProgress, { type Options } from 'cli-progress'

export interface Progress {
  update: (done: number) => void
  stop: () => void
}

/** Interval between two lines if standard error is not a terminal. */
const LINE_INTERVAL_MS = 1_000

/** Shows progress on standard error: a bar in a terminal, otherwise a line at intervals. */
export function startProgress (unit: string, total: number): Progress {
  const terminal = process.stderr.isTTY === true
  const started = Date.now()
  const bar = new cliProgress.SingleBar({
    stream: process.stderr,
    noTTYOutput: true,
    notTTYSchedule: LINE_INTERVAL_MS,
    // Without a terminal, this omits an empty line at the end.
    clearOnComplete: !terminal,
    // Otherwise the library disables the terminal's line wrapping, and Ctrl-C leaves it disabled.
    linewrap: true,
    barsize: 24,
    format: (options, { progress, value, eta }) => {
      const seconds = (Date.now() - started) / 1_000
      const rate = value === 0 ? '' : `, ${Math.round(value / seconds)}/s`
      const left = value === 0 || value === total || !Number.isFinite(eta) ? '' : `, ${formatDuration(eta)} left`
      const shownBar = terminal ? `${cliProgress.Format.BarFormat(progress, options)} ` : ''
      return `${shownBar}${value} of ${total} ${unit}${rate}${left}`
    }
  } satisfies Options & { linewrap: boolean })
  bar.start(total, 0)
  return { update: (done) => { bar.update(done) }, stop: () => { bar.stop() } }
}

function formatDuration (seconds: number): string {
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}
