import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'

export interface Received {
  /** The `webhook-id`. */
  id: string
  // Tests read members of events of every shape.
  event: any
  at: number
  headers: IncomingMessage['headers']
  path: string
  /** The text that is signed. */
  body: string
}

type Respond = (response: ServerResponse, received: Received, nth: number) => void

export interface Receiver {
  url: string
  received: Received[]
  /** The number of calls in flight, and its maximum. */
  open: number
  most: number
  /** Answers a call. By default with 204. */
  respond: Respond
  /** The secrets that may sign a call. A call with another signature gets 401 and is not recorded. */
  secrets: string[]
  until: (count: number, ms?: number) => Promise<void>
  close: () => Promise<void>
  /** Listens again at the same address after `close`. */
  reopen: () => Promise<void>
}

/** Limits a wait. It only tells a slow machine from an event that never comes. */
export const WAIT_MS = 180_000

/** The part of a tap test that this file uses. */
interface Teardown { teardown: (action: () => unknown) => void }

const accept: Respond = (response) => { response.writeHead(204).end() }

/** Opens a server that receives webhooks and verifies them as Standard Webhooks require. */
export async function openReceiver (t: Teardown, respond: Respond = accept): Promise<Receiver> {
  // Another test may still call the port, which its own server had.
  const ownPath = `/hooks/${randomUUID()}`
  const server = createServer((request, response) => {
    const { headers, url: path = '' } = request
    if (!path.startsWith(ownPath)) {
      response.writeHead(404).end()
      return
    }
    receiver.open++
    receiver.most = Math.max(receiver.most, receiver.open)
    response.on('close', () => { receiver.open-- })
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString('utf8')
      if (receiver.secrets.length > 0 && !receiver.secrets.some((secret) => verifies(secret, text, headers))) {
        response.writeHead(401).end()
        return
      }
      const id = String(headers['webhook-id'])
      const received = { id, event: JSON.parse(text), at: Date.now(), headers, path, body: text }
      receiver.received.push(received)
      receiver.respond(response, received, receiver.received.length)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const close = async (): Promise<void> => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  t.teardown(close)
  const receiver: Receiver = {
    url: `http://127.0.0.1:${port}${ownPath}`,
    received: [],
    open: 0,
    most: 0,
    respond,
    secrets: [],
    async until (count, ms = WAIT_MS) {
      await eventually(() => receiver.received.length >= count, ms,
        () => `only ${receiver.received.length} of ${count} calls arrived`)
    },
    close,
    async reopen () {
      server.listen(port, '127.0.0.1')
      await once(server, 'listening')
    }
  }
  return receiver
}

function verifies (secret: string, text: string, headers: IncomingMessage['headers']): boolean {
  try {
    new Webhook(secret).verify(text, headers as Record<string, string>)
    return true
  } catch {
    return false
  }
}

/** Waits until a condition holds. */
export async function eventually (
  holds: () => boolean | Promise<boolean>,
  ms = WAIT_MS,
  problem = (): string => `the condition did not hold in ${ms} ms`
): Promise<void> {
  // Tests set the clock of the machine.
  const deadline = performance.now() + ms
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(problem())
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
