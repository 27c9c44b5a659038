import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** The requests of accounts that attack: without the checks of a client, because they share its process. */
export interface Traffic {
  /** The ports of the processes of the service, which requests use in turn. */
  ports: number[]
}

let turn = 0

function nextPort ({ ports }: Traffic): number {
  return ports[turn++ % ports.length]!
}

/** Sends one request. @returns the parsed answer */
export async function send (
  traffic: Traffic, method: string, path: string, key: string | undefined, body?: unknown
): Promise<{ status: number, headers: Headers, body: any }> {
  const response = await fetch(`http://127.0.0.1:${nextPort(traffic)}${path}`, {
    method,
    headers: {
      ...key === undefined ? {} : { authorization: `Bearer ${key}` },
      ...body === undefined ? {} : { 'content-type': 'application/json' }
    },
    ...body === undefined ? {} : { body: JSON.stringify(body) }
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) }
}

/** Opens an account. */
export async function openAccount (traffic: Traffic): Promise<{ account: number, key: string }> {
  const { body } = await send(traffic, 'POST', '/accounts', undefined, { name: 'A store' })
  return { account: body.id, key: body.apiKey }
}

export async function inParallel<T> (workers: number, rounds: number, work: () => Promise<T>): Promise<T[]> {
  const results: T[] = []
  await Promise.all(Array.from({ length: workers }, async () => {
    for (let i = 0; i < rounds; i++) results.push(await work())
  }))
  return results
}

export interface Requests { bytes: string, count: number }

/** Returns the bytes of pipelined requests. */
export function requests (
  count: number, method: string, path: string, key: string | undefined, body?: unknown
): Requests {
  const text = body === undefined ? '' : JSON.stringify(body)
  const request = [
    `${method} ${path} HTTP/1.1`,
    'Host: petstore',
    ...key === undefined ? [] : [`Authorization: Bearer ${key}`],
    ...body === undefined ? [] : ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(text)}`],
    '',
    text
  ].join('\r\n')
  return { bytes: request.repeat(count), count }
}

/** Sends requests on each connection again and again, the next ones when all answers have arrived. */
export async function flood (
  traffic: Traffic, connections: number, { bytes, count }: Requests, stopped: AbortSignal
): Promise<void> {
  await repeat(traffic, connections, stopped, (socket) => {
    let answers = 0
    let tail = ''
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      answers += (tail + chunk).split('HTTP/1.1 ').length - 1
      tail = chunk.slice(-8)
      if (answers < count) return
      answers = 0
      socket.write(bytes)
    })
    socket.write(bytes)
  })
}

/** Opens a connection. @returns a function that sends one request and returns its answer */
export async function openConnection (
  traffic: Traffic, stopped: AbortSignal
): Promise<(request: Requests) => Promise<string>> {
  const socket = connect(nextPort(traffic), '127.0.0.1').setEncoding('latin1')
  stopped.addEventListener('abort', () => { socket.destroy() })
  await once(socket, 'connect')
  return async ({ bytes }) => {
    socket.write(bytes)
    let answer = ''
    while (!isComplete(answer)) answer += (await once(socket, 'data', { signal: stopped }))[0]
    return answer
  }
}

function isComplete (answer: string): boolean {
  const head = answer.indexOf('\r\n\r\n')
  const length = Number(/content-length: (\d+)/i.exec(answer)?.[1] ?? 0)
  return head > 0 && answer.length >= head + 4 + length
}

/** Sends requests on each connection, and reads no answer. */
export async function occupy (
  traffic: Traffic, connections: number, { bytes }: Requests, stopped: AbortSignal
): Promise<void> {
  await repeat(traffic, connections, stopped, (socket) => { socket.write(bytes) })
}

/** Keeps a number of connections open. */
export async function repeat (
  traffic: Traffic, connections: number, stopped: AbortSignal, use: (socket: Socket) => void
): Promise<void> {
  await Promise.all(Array.from({ length: connections }, async () => {
    while (!stopped.aborted) {
      const socket = connect(nextPort(traffic), '127.0.0.1')
      const stop = (): void => { socket.destroy() }
      stopped.addEventListener('abort', stop)
      socket.on('connect', () => { use(socket) }).on('error', () => {})
      await new Promise((resolve) => { socket.once('close', resolve) })
      stopped.removeEventListener('abort', stop)
      if (!stopped.aborted) await sleep(50)
    }
  }))
}
