import { Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import type { Contract } from '../support/contract.ts'
import type { Report } from './report.ts'

export interface Reply {
  /** 0 when no whole answer came. */
  status: number
  headers: IncomingHttpHeaders
  text: string
  // Programs reach into answers of every shape.
  body: any
  /** Some bytes of an answer came, and then no more. */
  cut: boolean
  /** How long it took, in ms. */
  took: number
}

export interface Call {
  method: string
  path: string
  body?: unknown
  headers?: Record<string, string>
}

/** Sends requests to wherever the service is, counts them, and holds every answer against the document. */
export interface Client {
  send: (call: Call) => Promise<Reply>
  close: () => void
}

/** Longer than the service may take for anything: who waits longer hangs. */
const HANGS_MS = 30_000

export function createClient (port: () => number, contract: Contract, report: Report, { sockets = 64, key }: { sockets?: number, key?: string } = {}): Client {
  const agent = new Agent({ keepAlive: true, maxSockets: sockets, maxFreeSockets: sockets, scheduling: 'fifo' })

  async function send ({ method, path, body, headers = {} }: Call): Promise<Reply> {
    report.requests++
    const began = performance.now()
    const reply = await new Promise<Omit<Reply, 'took'>>((resolve) => {
      let before = 0
      const lost = (bytes: number): void => { resolve({ status: 0, headers: {}, text: '', body: undefined, cut: bytes > 0 }) }
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
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text, body: parsed(text), cut: false })
        })
      })
      request.setTimeout(HANGS_MS, () => {
        report.violations.push(`${method} ${path} hangs: nothing came for ${HANGS_MS / 1000} s`)
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
