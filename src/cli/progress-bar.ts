import cliProgress, { type Options } from 'cli-progress'

export interface Progress {
  update: (done: number) => void
  stop: () => void
}

/** How often a line is written where no terminal looks, in ms. */
const LINE_MS = 1_000

/** Shows on standard error how far something is: a bar in a terminal, else a line from time to time. */
export function startProgress (things: string, total: number): Progress {
  const terminal = process.stderr.isTTY === true
  const started = Date.now()
  const bar = new cliProgress.SingleBar({
    stream: process.stderr,
    noTTYOutput: true,
    notTTYSchedule: LINE_MS,
    // Without a terminal this is what leaves out an empty line at the end.
    clearOnComplete: !terminal,
    // The library switches the terminal's own wrapping off otherwise, and Ctrl-C would leave it so.
    linewrap: true,
    barsize: 24,
    format: (options, { progress, value, eta }) => {
      const seconds = (Date.now() - started) / 1_000
      const rate = value === 0 ? '' : `, ${Math.round(value / seconds)}/s`
      const left = value === 0 || value === total || !Number.isFinite(eta) ? '' : `, ${duration(eta)} left`
      return `${terminal ? `${cliProgress.Format.BarFormat(progress, options)} ` : ''}${value} of ${total} ${things}${rate}${left}`
    }
  } satisfies Options & { linewrap: boolean })
  bar.start(total, 0)
  return { update: (done) => { bar.update(done) }, stop: () => { bar.stop() } }
}

function duration (seconds: number): string {
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}
