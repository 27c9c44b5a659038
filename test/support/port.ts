import { once } from 'node:events'
import { createServer } from 'node:net'

// No system gives these ports to a socket that asks for any port: other tests do that at the same time.
const FIRST = 11_000
const LAST = 31_999

/** Returns a free port of the loopback address. Another process can still take it, but only by asking for it. */
export async function freePort (): Promise<number> {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST + 1))
    const server = createServer()
    try {
      await once(server.listen(port, '127.0.0.1'), 'listening')
    } catch {
      continue
    }
    server.close()
    await once(server, 'close')
    return port
  }
}
