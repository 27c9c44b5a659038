import { once } from 'node:events'
import { createInterface } from 'node:readline'
import t from 'tap'

// `npm test` starts this program, and writes the test files that it runs to its input, each when the one before has
// ended. To load tap, tsx and the service takes a process 2 s, which is most of the time of a short file.

/** What a file does when its tests have ended. tap would do it, and end the root test, when the root is idle. */
const teardowns: Array<() => unknown> = []
t.teardown = (action) => { teardowns.unshift(action) }

for await (const file of createInterface(process.stdin)) {
  await import(`../../${file}`).catch((error: unknown) => { t.error(error, 'the file can be loaded') })
  if (!t.idle) await once(t, 'idle')
  for (const teardown of teardowns.splice(0)) await teardown()
  console.log(`# end of ${file}`)
}
