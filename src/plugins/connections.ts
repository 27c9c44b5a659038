import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { Config } from '../config.ts'

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

type Handler = (request: IncomingMessage, response: ServerResponse) => void

interface Connection {
  socket: Socket
  /** The response of the request in flight. */
  response: ServerResponse | undefined
  /** A request was answered. */
  answered: boolean
  /** Pipelined requests that wait for their turn. */
  waiting: Array<[IncomingMessage, ServerResponse]>
}

type Options = Pick<Config, 'SLOW_READER_MS'> & { limits?: Partial<Limits> }

/** The open connections of a server, each with one request in flight. */
class Connections {
  readonly #handle: Handler
  readonly #limits: Limits
  readonly #log: FastifyBaseLogger
  readonly #open = new Map<Socket, Connection>()
  /** Number of pipelined requests that wait, on all connections together. */
  #waiting = 0

  constructor (handle: Handler, limits: Limits, log: FastifyBaseLogger) {
    this.#handle = handle
    this.#limits = limits
    this.#log = log
  }

  add (socket: Socket): void {
    const connection: Connection = { socket, response: undefined, answered: false, waiting: [] }
    this.#open.set(socket, connection)
    socket.once('close', () => {
      this.#waiting -= connection.waiting.length
      this.#open.delete(socket)
    })
  }

  /** Handles a request, or lets it wait for the one in flight on its connection. */
  onRequest (request: IncomingMessage, response: ServerResponse): void {
    const connection = this.#open.get(request.socket)
    if (connection === undefined) return this.#handle(request, response)
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
    const connection = this.#open.get(socket)
    if (connection === undefined) return
    const { response, answered } = connection
    // This is the keep-alive time-out. Other time-outs apply until the first request is complete.
    if (response === undefined && answered) socket.destroy()
    if (response !== undefined && socket.writableLength > 0) this.#disconnect(connection, 'it takes no bytes')
  }

  /** Disconnects clients until the unsent bytes are within the limits. */
  checkUnsentBytes (): void {
    const { unsentBytes, totalUnsentBytes } = this.#limits
    let total = 0
    for (const connection of this.#open.values()) {
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
    connection.answered = true
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
    return [...this.#open.values()].filter(({ socket }) => !socket.destroyed)
      .reduce((a, b) => sizeOf(b) > sizeOf(a) ? b : a)
  }

  #disconnect ({ socket }: Connection, reason: string): void {
    const { remoteAddress: address, writableLength: unsentBytes } = socket
    this.#log.info({ address, unsentBytes }, `connection closed: ${reason}`)
    socket.destroy()
  }
}

/**
 * Bounds what one connection can cost. A connection has one request in flight: pipelined requests wait, and the service
 * does not read from the connection meanwhile. The service disconnects a client that takes nothing for
 * `SLOW_READER_MS` and one with too many unsent bytes, and, if all clients together have too many, the one with the
 * most. A route whose responses have a limit of their own switches the time-out of its sockets off.
 */
export const connections = fp(async function connections (app: FastifyInstance, options: Options) {
  const { server } = app
  const [handle] = server.listeners('request') as [Handler]
  const open = new Connections(handle, { ...LIMITS, ...options.limits }, app.log)
  server.removeListener('request', handle)
  server.on('request', (request, response) => { open.onRequest(request, response) })
  server.on('connection', (socket: Socket) => { open.add(socket) })
  // Node counts progress in sending as activity.
  server.setTimeout(options.SLOW_READER_MS, (socket: Socket) => { open.onTimeout(socket) })
  const check = setInterval(() => { open.checkUnsentBytes() }, CHECK_MS).unref()
  app.addHook('onClose', async () => { clearInterval(check) })
}, { name: 'connections' })
