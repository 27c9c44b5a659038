import { Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import type { Contract } from '../support/contract.ts'
import type { Report } from './report.ts'

export interface Reply {
  /** The status, or 0 when no complete answer came. */
  status: number
  headers: IncomingHttpHeaders
  text: string
  // Scenarios read members of answers of every shape.
  body: any
  /** The connection ended after the first bytes of an answer. */
  truncated: boolean
  /** The duration of the request in ms. */
  took: number
}

export interface Call {
  method: string
  path: string
  body?: unknown
  headers?: Record<string, string>
}

/** Sends requests to the current port of the service, counts them, and checks every answer against the document. */
export interface Client {
  send: (call: Call) => Promise<Reply>
  close: () => void
}

/** Longer than any time-out of the service: a request without an answer after it hangs. */
const HANG_TIMEOUT_MS = 30_000

export interface ClientOptions { sockets?: number, key?: string }

export function createClient (
  port: () => number, contract: Contract, report: Report, { sockets = 64, key }: ClientOptions = {}
): Client {
  const agent = new Agent({ keepAlive: true, maxSockets: sockets, maxFreeSockets: sockets, scheduling: 'fifo' })

  async function send ({ method, path, body, headers = {} }: Call): Promise<Reply> {
    report.requests++
    const began = performance.now()
    const reply = await new Promise<Omit<Reply, 'took'>>((resolve) => {
      let before = 0
      const lost = (bytes: number): void => {
        resolve({ status: 0, headers: {}, text: '', body: undefined, truncated: bytes > 0 })
      }
      const request = httpRequest({
        agent,
        host: '127.0.0.1',
        port: port(),
        method,
        path,
        headers: {
          ...key === undefined ? {} : { authorization: `Bearer ${key}` },
          ...body === undefined ? {} : { 'content-type': 'application/json' },
          ...headers
        }
      }, (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', () => { lost(1) })
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8')
          const { statusCode: status = 0, headers } = response
          resolve({ status, headers, text, body: parsed(text), truncated: false })
        })
      })
      request.setTimeout(HANG_TIMEOUT_MS, () => {
        report.violations.push(`${method} ${path} hangs: no byte arrived for ${HANG_TIMEOUT_MS / 1000} s`)
        request.destroy()
      })
      request.on('socket', (socket) => { before = socket.bytesRead })
      request.on('error', () => { lost((request.socket?.bytesRead ?? before) - before) })
      request.end(body === undefined ? undefined : JSON.stringify(body))
    })
    if (reply.status !== 0) {
      const problem = contract.problemOf(method, path, reply as Reply)
      if (problem !== undefined) report.violations.push(`${method} ${path} is not answered as documented: ${problem}`)
      if (reply.status === 500) report.violations.push(`${method} ${path} is answered ${reply.text}`)
    }
    return { ...reply, took: performance.now() - began }
  }

  return { send, close: () => { agent.destroy() } }
}

function parsed (text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
