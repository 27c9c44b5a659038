// Shows how far a step is on standard error: one line that changes in a terminal, otherwise a line every few seconds.

const LINE_INTERVAL_MS = 5_000

export function startProgress (title, total) {
  const terminal = process.stderr.isTTY
  let printed = Date.now()
  process.stderr.write(terminal ? `${title} …` : `${title}: ${total} …\n`)
  return {
    update (done) {
      if (!terminal && Date.now() - printed < LINE_INTERVAL_MS) return
      printed = Date.now()
      process.stderr.write(terminal ? `\r${title}: ${done} of ${total} …` : `${title}: ${done} of ${total} …\n`)
    },
    stop () {
      if (terminal) process.stderr.write('\n')
    }
  }
}
