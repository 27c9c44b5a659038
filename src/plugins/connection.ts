import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { CountedRequest } from './unfinished-requests.ts'

/** What the service knows of an open connection. */
export interface Connection {
  socket: Socket
  /** The response of the request in flight. */
  response: ServerResponse | undefined
  /** The last request, whose body may still arrive after its response. */
  lastRequest: CountedRequest | undefined
  /** Pipelined requests that wait for their turn. */
  waiting: Array<[CountedRequest, ServerResponse]>
  /** `socket.bytesRead` after the last response: with more, a request has begun. */
  readBytes: number
  /** Number of bytes that the client had taken when it last took some, and the time, by `performance.now()`. */
  takenBytes: number
  tookAt: number
}

export function createConnection (socket: Socket): Connection {
  return {
    socket,
    response: undefined,
    lastRequest: undefined,
    waiting: [],
    readBytes: 0,
    takenBytes: 0,
    tookAt: performance.now()
  }
}

/** Tells whether no request is in flight, not even a part of one. */
export function isIdle ({ socket, response, lastRequest, readBytes }: Connection): boolean {
  return response === undefined && lastRequest?.complete !== false && socket.bytesRead === readBytes
}

/** Memory of what the client has not taken. */
export function unsentBytesOf ({ socket }: Connection): number {
  return socket.destroyed ? 0 : socket.writableLength
}

/** Memory of a request that is not complete. */
export function unfinishedBytesOf ({ socket, lastRequest }: Connection): number {
  return socket.destroyed ? 0 : lastRequest?.unfinishedBytes ?? 0
}

/**
 * Returns the number of bytes that the system took for the client; `socket.bytesWritten` also counts those that wait.
 * Linux takes more when a third of its buffer is free, which holds up to 4 MB between processes of a machine.
 */
export function takenBytesOf (socket: Socket): number {
  const { _handle: handle } = socket as { _handle?: { bytesWritten: number, writeQueueSize: number } | null }
  return handle == null ? 0 : handle.bytesWritten - handle.writeQueueSize
}
