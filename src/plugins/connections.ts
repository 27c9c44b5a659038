import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { FastifyBaseLogger, FastifyServerFactory } from 'fastify'
import type { Config } from '../config.ts'
import { MAX_HEAD_BYTES } from './request-head.ts'

interface Limits {
  /** Maximum number of bytes that one connection has not taken. */
  unsentBytes: number
  /** Maximum number of bytes that all connections together have not taken. */
  totalUnsentBytes: number
  /** Maximum number of pipelined requests that wait, on all connections together. */
  waiting: number
}

const LIMITS: Limits = {
  unsentBytes: 8_388_608,
  totalUnsentBytes: 134_217_728,
  // Some 50 MB.
  waiting: 20_000
}

/** Interval at which unsent bytes are counted. */
const CHECK_MS = 100

/** Time for which an idle connection stays open: longer than the 60 s for which most proxies reuse one. */
const KEEP_ALIVE_MS = 72_000

/** By default, Node looks for late requests every 30 s: a timeout of 10 s would take up to 40 s. */
const MAX_TIMEOUT_CHECK_MS = 1_000

type Handler = (request: IncomingMessage, response: ServerResponse) => void

interface Connection {
  socket: Socket
  /** The response of the request in flight. */
  response: ServerResponse | undefined
  /** The last request, whose body may still arrive after its response. */
  lastRequest: IncomingMessage | undefined
  /** Pipelined requests that wait for their turn. */
  waiting: Array<[IncomingMessage, ServerResponse]>
}

type Options = Pick<Config, 'REQUEST_TIMEOUT_MS' | 'SLOW_READER_MS'> & { limits?: Partial<Limits> }

const connections = new WeakMap<Duplex, Connection>()

/** Returns what is known of the connection that an error of the server names. */
export function connectionOf (socket: Duplex): Readonly<Connection> | undefined {
  return connections.get(socket)
}

/** The open connections of a server, each with one request in flight. */
class Connections {
  readonly #handle: Handler
  readonly #limits: Limits
  readonly #log: FastifyBaseLogger
  readonly #open = new Set<Connection>()
  /** Number of pipelined requests that wait, on all connections together. */
  #waiting = 0
  #check: NodeJS.Timeout | undefined

  constructor (handle: Handler, limits: Limits, log: FastifyBaseLogger) {
    this.#handle = handle
    this.#limits = limits
    this.#log = log
  }

  add (socket: Socket): void {
    const connection: Connection = { socket, response: undefined, lastRequest: undefined, waiting: [] }
    connections.set(socket, connection)
    this.#open.add(connection)
    this.#check ??= setInterval(() => { this.#checkUnsentBytes() }, CHECK_MS).unref()
    socket.once('close', () => {
      this.#waiting -= connection.waiting.length
      this.#open.delete(connection)
      if (this.#open.size > 0) return
      clearInterval(this.#check)
      this.#check = undefined
    })
  }

  /** Handles a request, or lets it wait for the one in flight on its connection. */
  onRequest (request: IncomingMessage, response: ServerResponse): void {
    const connection = connections.get(request.socket)
    if (connection === undefined) return this.#handle(request, response)
    connection.lastRequest = request
    // Node goes on parsing what it read before the connection was closed.
    if (request.socket.destroyed) return
    if (connection.response === undefined) return this.#begin(connection, request, response)
    connection.waiting.push([request, response])
    request.socket.pause()
    if (++this.#waiting > this.#limits.waiting) {
      this.#disconnect(this.#largest(({ waiting }) => waiting.length), 'too many requests wait')
    }
  }

  onTimeout (socket: Socket): void {
    const connection = connections.get(socket)
    if (connection === undefined) return
    const { response, lastRequest } = connection
    // This is the keep-alive time-out. Other time-outs apply until the first request is complete.
    if (response === undefined && lastRequest !== undefined) socket.destroy()
    if (response !== undefined && socket.writableLength > 0) this.#disconnect(connection, 'it takes no bytes')
  }

  /** Disconnects clients until the unsent bytes are within the limits. */
  #checkUnsentBytes (): void {
    const { unsentBytes, totalUnsentBytes } = this.#limits
    let total = 0
    for (const connection of this.#open) {
      const { destroyed, writableLength } = connection.socket
      if (destroyed) continue
      if (writableLength > unsentBytes) this.#disconnect(connection, 'it has too many unsent bytes')
      else total += writableLength
    }
    while (total > totalUnsentBytes) {
      const connection = this.#largest(({ socket }) => socket.writableLength)
      total -= connection.socket.writableLength
      this.#disconnect(connection, 'all connections together have too many unsent bytes')
    }
  }

  #begin (connection: Connection, request: IncomingMessage, response: ServerResponse): void {
    connection.response = response
    response.once('close', () => { this.#handleNext(connection) })
    this.#handle(request, response)
  }

  /** Handles the next request of a connection, unless the last response ended the connection. */
  #handleNext (connection: Connection): void {
    const { socket } = connection
    connection.response = undefined
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
    return [...this.#open].filter(({ socket }) => !socket.destroyed)
      .reduce((a, b) => sizeOf(b) > sizeOf(a) ? b : a)
  }

  #disconnect ({ socket }: Connection, reason: string): void {
    const { remoteAddress: address, writableLength: unsentBytes } = socket
    this.#log.info({ address, unsentBytes }, `connection closed: ${reason}`)
    socket.destroy()
  }
}

/**
 * Creates the server of Fastify, which bounds what one connection can cost: Fastify's option `serverFactory`. A
 * connection has one request in flight: pipelined requests wait, and the service does not read from the connection
 * meanwhile. The service disconnects a client that takes nothing for `SLOW_READER_MS` and one with too many unsent
 * bytes, and, if all clients together have too many, the one with the most. A route whose responses have a limit of
 * their own switches the time-out of its sockets off.
 */
export function serverFactory (
  { REQUEST_TIMEOUT_MS, SLOW_READER_MS, limits }: Options, log: FastifyBaseLogger
): FastifyServerFactory<Server> {
  return (handle) => {
    const open = new Connections(handle, { ...LIMITS, ...limits }, log)
    const server = createServer({
      maxHeaderSize: MAX_HEAD_BYTES,
      requestTimeout: REQUEST_TIMEOUT_MS,
      headersTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: Math.min(REQUEST_TIMEOUT_MS, MAX_TIMEOUT_CHECK_MS),
      keepAliveTimeout: KEEP_ALIVE_MS,
      // Node's own response has no body; the plugin request-head sends the Error shape.
      requireHostHeader: false
    }, (request, response) => { open.onRequest(request, response) })
    // Otherwise Node silently drops header fields beyond the 2000th. MAX_HEADER_BYTES limits them already.
    server.maxHeadersCount = 0
    server.on('connection', (socket) => { open.add(socket) })
    // Node counts progress in sending as activity.
    return server.setTimeout(SLOW_READER_MS, (socket) => { open.onTimeout(socket) })
  }
}
