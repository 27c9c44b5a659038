import { createServer, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { FastifyBaseLogger, FastifyServerFactory } from 'fastify'
import type { Config } from '../config.ts'
import {
  createConnection, isIdle, takenBytesOf, unfinishedBytesOf, unsentBytesOf, type Connection
} from './connection.ts'
import { MAX_HEAD_BYTES, MAX_HEADER_FIELDS } from './request-head.ts'
import { ClosingResponse, CountedRequest, isFlood, LINGER_MS } from './unfinished-requests.ts'

interface Limits {
  /** Maximum number of bytes that one connection has not taken. */
  unsentBytes: number
  /** Maximum number of bytes that all connections together have not taken. */
  totalUnsentBytes: number
  /** Maximum memory of all bodies that are not complete. */
  totalUnfinishedBytes: number
  /** Maximum number of pipelined requests that wait, on all connections together. */
  waiting: number
}

const LIMITS: Limits = {
  unsentBytes: 8_388_608,
  totalUnsentBytes: 134_217_728,
  // 512 bodies of the default BODY_LIMIT.
  totalUnfinishedBytes: 67_108_864,
  // Some 50 MB.
  waiting: 20_000
}

/** Maximum number of connections that wait to be accepted: after a restart, thousands of streams reconnect at once. */
export const LISTEN_BACKLOG = 4_096

/** Interval at which connections are checked. */
const CHECK_MS = 100

/** Time for which an idle connection stays open: longer than the 60 s for which most proxies reuse one. */
const KEEP_ALIVE_MS = 72_000

/** By default, Node looks for late requests every 30 s: a timeout of 10 s would take up to 40 s. */
const MAX_TIMEOUT_CHECK_MS = 1_000

type Handler = (request: CountedRequest, response: ServerResponse) => void

type Options = Pick<Config, 'REQUEST_TIMEOUT_MS' | 'SLOW_READER_MS'> & { limits?: Partial<Limits> }

const connections = new WeakMap<Duplex, Connection>()

/** Returns what is known of the connection that an error of the server names. */
export function connectionOf (socket: Duplex): Readonly<Connection> | undefined {
  return connections.get(socket)
}

/** Tells whether a connection that sent too many small chunks has had its response. */
function hasEndedFlood ({ socket }: Connection): boolean {
  return socket.writableFinished && isFlood(socket)
}

/** The open connections of a server, each with one request in flight. */
class Connections {
  readonly #handle: Handler
  readonly #options: Options & { limits: Limits }
  readonly #log: FastifyBaseLogger
  readonly #open = new Set<Connection>()
  /** Memory of all bodies that are not complete. */
  #unfinishedBytes = 0
  /** Number of pipelined requests that wait, on all connections together. */
  #waiting = 0
  #check: NodeJS.Timeout | undefined
  #isStopping = false

  constructor (handle: Handler, options: Options & { limits: Limits }, log: FastifyBaseLogger) {
    this.#handle = handle
    this.#options = options
    this.#log = log
  }

  add (socket: Socket): void {
    const connection = createConnection(socket)
    connections.set(socket, connection)
    this.#open.add(connection)
    this.#check ??= setInterval(() => { this.#checkConnections() }, CHECK_MS).unref()
    socket.once('close', () => {
      this.#waiting -= connection.waiting.length
      // Only the last request of a connection can be incomplete.
      connection.lastRequest?.release()
      this.#open.delete(connection)
      if (this.#open.size > 0) return
      clearInterval(this.#check)
      this.#check = undefined
    })
  }

  /** Handles a request, or lets it wait for the one in flight on its connection. */
  onRequest (request: CountedRequest, response: ServerResponse): void {
    const { socket } = request
    const connection = connections.get(socket)
    if (connection === undefined) return this.#handle(request, response)
    connection.lastRequest = request
    // Node goes on parsing what it read before the connection was closed.
    if (socket.destroyed) return
    if (connection.response === undefined) return this.#begin(connection, request, response)
    connection.waiting.push([request, response])
    socket.pause()
    if (++this.#waiting > this.#options.limits.waiting) {
      this.#disconnect(this.#largest(({ waiting }) => waiting.length), 'too many requests wait')
    }
  }

  onTimeout (socket: Socket): void {
    const connection = connections.get(socket)
    if (connection === undefined) return
    const { response, lastRequest } = connection
    // This is the keep-alive time-out. Other time-outs apply until the first request is complete.
    if (response === undefined && lastRequest !== undefined) socket.destroy()
  }

  /** Closes idle connections, also those that become idle later, and those whose clients do not take their response. */
  closeIdle (): void {
    this.#isStopping = true
    this.#checkConnections()
  }

  /** Disconnects clients until all connections are within the limits. */
  #checkConnections (): void {
    const { unsentBytes, totalUnsentBytes } = this.#options.limits
    const now = performance.now()
    for (const connection of this.#open) {
      const { socket } = connection
      if (socket.destroyed) continue
      if (socket.writableLength > unsentBytes) this.#disconnect(connection, 'it has too many unsent bytes')
      else if (this.#isStalled(connection, now)) this.#disconnect(connection, 'it takes no bytes')
      else if (this.#isStopping && (isIdle(connection) || hasEndedFlood(connection))) socket.destroy()
    }
    this.#limitUnsentBytes(totalUnsentBytes)
  }

  /** Tells whether the client has taken no bytes for too long. Its connection may have a limit of its own. */
  #isStalled (connection: Connection, now: number): boolean {
    const { socket, response } = connection
    // Of thousands of idle connections, `takenBytesOf` would take 8 ms.
    if (socket.writableLength === 0) {
      connection.tookAt = now
      return false
    }
    const takenBytes = takenBytesOf(socket)
    if (takenBytes !== connection.takenBytes) {
      connection.takenBytes = takenBytes
      connection.tookAt = now
      return false
    }
    const hasOwnLimit = socket.timeout === 0
    const limit = hasOwnLimit ? Infinity : this.#options.SLOW_READER_MS
    const isLast = this.#isStopping && response?.writableEnded === true
    return now - connection.tookAt >= (isLast ? Math.min(limit, LINGER_MS) : limit)
  }

  /** Disconnects the clients with the most until all connections together are within the limit. */
  #limitUnsentBytes (limit: number): void {
    let total = 0
    for (const connection of this.#open) total += unsentBytesOf(connection)
    while (total > limit) {
      const connection = this.#largest(unsentBytesOf)
      total -= unsentBytesOf(connection)
      this.#disconnect(connection, 'all connections together have too many unsent bytes')
    }
  }

  /** Counts a part of a body. Beyond the limit, the service abandons the largest bodies. */
  countBody (bytes: number): void {
    this.#unfinishedBytes += bytes
    const { totalUnfinishedBytes: limit } = this.#options.limits
    if (this.#unfinishedBytes <= limit) return
    let count = 0
    // Most connections have no body, or one that was abandoned.
    const unfinished = [...this.#open].filter((connection) => unfinishedBytesOf(connection) > 0)
    for (const connection of unfinished.sort((a, b) => unfinishedBytesOf(b) - unfinishedBytesOf(a))) {
      // Some room: otherwise each part of thousands of bodies would look for the largest again.
      if (this.#unfinishedBytes <= limit * 3 / 4) break
      connection.lastRequest!.abandon()
      count++
    }
    this.#log.info({ count }, 'requests abandoned: all connections together have too many unfinished bytes')
  }

  #begin (connection: Connection, request: CountedRequest, response: ServerResponse): void {
    connection.response = response
    response.on('close', () => { this.#handleNext(connection) })
    this.#handle(request, response)
  }

  /** Handles the next request of a connection, unless the last response ended the connection. */
  #handleNext (connection: Connection): void {
    const { socket } = connection
    connection.response = undefined
    connection.readBytes = socket.bytesRead
    if (socket.destroyed || socket.writableEnded) return
    const next = connection.waiting.shift()
    if (next === undefined) return
    this.#waiting--
    this.#begin(connection, ...next)
    // Node itself resumes reading when the client has taken a large response.
    if (connection.waiting.length > 0) socket.pause()
    else socket.resume()
  }

  #largest (sizeOf: (connection: Connection) => number): Connection {
    let largest!: Connection
    let most = -1
    for (const connection of this.#open) {
      const size = sizeOf(connection)
      if (size > most) [largest, most] = [connection, size]
    }
    return largest
  }

  #disconnect ({ socket, waiting }: Connection, reason: string): void {
    // At once: before the connection is closed, others would exceed the limit with them.
    this.#waiting -= waiting.splice(0).length
    const { remoteAddress: address, writableLength: unsentBytes } = socket
    this.#log.info({ address, unsentBytes }, `connection closed: ${reason}`)
    socket.destroy()
  }
}

/**
 * Creates the server of Fastify, which bounds what one connection can cost: Fastify's option `serverFactory`. A
 * connection has one request in flight: pipelined requests wait, and the service does not read from the connection
 * meanwhile. The service disconnects a client that takes nothing for `SLOW_READER_MS` and one with too many unsent
 * bytes, and, if all clients together have too many, the one with the most. If all bodies that are not complete have
 * too many bytes, it abandons the largest. A route whose responses have a limit of their own switches the time-out of
 * its sockets off.
 */
export function serverFactory (
  { limits, ...options }: Options, log: FastifyBaseLogger
): FastifyServerFactory<Server> {
  const { REQUEST_TIMEOUT_MS, SLOW_READER_MS } = options
  return (handle) => {
    const open = new Connections(handle, { ...options, limits: { ...LIMITS, ...limits } }, log)
    const server = createServer({
      IncomingMessage: CountedRequest,
      ServerResponse: ClosingResponse,
      maxHeaderSize: MAX_HEAD_BYTES,
      requestTimeout: REQUEST_TIMEOUT_MS,
      headersTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: Math.min(REQUEST_TIMEOUT_MS, MAX_TIMEOUT_CHECK_MS),
      keepAliveTimeout: KEEP_ALIVE_MS,
      // Node's own response has no body; the plugin request-head sends the Error shape.
      requireHostHeader: false
    }, (request, response) => {
      if (request.headers['transfer-encoding'] !== undefined) {
        request.onTooManyChunks = (error) => { server.emit('clientError', error, request.socket) }
      }
      request.meter = { add: (bytes) => { open.countBody(bytes) } }
      open.onRequest(request, response)
    }) as unknown as Server
    // Called by `server.close()`. Node's own version also closes connections that have not sent their whole response,
    // and leaves those open that have not received anything.
    server.closeIdleConnections = () => { open.closeIdle() }
    server.on('connection', (socket) => { open.add(socket) })
    // Node silently drops further fields. One too many is enough for the plugin request-head to reject the request.
    server.maxHeadersCount = MAX_HEADER_FIELDS + 1
    return server.setTimeout(SLOW_READER_MS, (socket) => { open.onTimeout(socket) })
  }
}
