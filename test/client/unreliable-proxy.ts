import { once } from 'node:events'
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

export interface Forwarded {
  method: string
  path: string
  headers: IncomingMessage['headers']
  at: number
}

/** Forwards a request, or does not, and answers in the way of a network or gateway that fails. */
export type Fault = (client: IncomingMessage, response: ServerResponse, forward: Forward) => Promise<void> | void

/** Sends the request to the service and waits for the head of its answer, which then has been committed. */
export type Forward = () => Promise<IncomingMessage>

export interface UnreliableProxy {
  url: string
  /** The requests that arrived at the proxy, in order. */
  requests: Forwarded[]
  /** The number of requests in flight. */
  open: number
  /** The number of requests whose answer of the service has begun. */
  answered: number
  /** The faults of the next matching requests, in order. Requests without a fault are forwarded. */
  faults: Fault[]
  /** Breaks all connections of clients. */
  cut: () => void
}

/** Handles the request, and closes the connection without an answer. */
export const loseAnswer: Fault = async (client, _response, forward) => {
  await forward()
  client.socket.destroy()
}

/** Handles the request, and never answers. */
export const holdAnswer: Fault = async (_client, _response, forward) => { await forward() }

/** Handles the request, and sends the head and a part of the body. */
export const truncateAnswer: Fault = async (client, response, forward) => {
  const answer = await forward()
  response.writeHead(answer.statusCode!, answer.headers)
  response.write('{', () => client.socket.destroy())
}

/** Answers in place of the service. */
export function answerWith (status: number, body: string, headers: Record<string, string> = {}): Fault {
  return (_client, response) => { response.writeHead(status, headers).end(body) }
}

/** Opens a proxy in front of a service. */
export async function openProxy (
  t: Test, port: number, matches: (request: IncomingMessage) => boolean = () => true
): Promise<UnreliableProxy> {
  const server = createServer((client, response) => {
    const { method = '', url: path = '', headers } = client
    proxy.requests.push({ method, path, headers, at: performance.now() })
    proxy.open++
    response.on('close', () => { proxy.open-- })
    const forward = async (): Promise<IncomingMessage> => {
      const sent = request({ host: '127.0.0.1', port, method, path, headers, agent: false })
      client.pipe(sent)
      response.on('close', () => sent.destroy())
      const [answer] = await once(sent, 'response') as [IncomingMessage]
      proxy.answered++
      return answer
    }
    const fault = matches(client) ? proxy.faults.shift() : undefined
    const handled = fault === undefined ? passThrough(response, forward) : fault(client, response, forward)
    Promise.resolve(handled).catch(() => { client.socket.destroy() })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  const proxy: UnreliableProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: [],
    open: 0,
    answered: 0,
    faults: [],
    cut: () => { server.closeAllConnections() }
  }
  return proxy
}

async function passThrough (response: ServerResponse, forward: Forward): Promise<void> {
  const answer = await forward()
  response.writeHead(answer.statusCode!, answer.headers)
  answer.pipe(response)
}
