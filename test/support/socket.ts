import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect, type Server, type Socket } from 'node:net'
import type { TestApp } from './app.ts'
import { eventually } from './receiver.ts'

export interface RawAnswer {
  status: number
  headers: Record<string, string>
  text: string
  // Tests read members of answers of every shape.
  body: any
}

type Bytes = string | Buffer

/** Sends raw bytes, piece by piece, which no HTTP client would send. @returns the first answer, or `undefined` */
export async function sendBytes (
  port: number, ...pieces: Array<Bytes | Promise<Bytes>>
): Promise<RawAnswer | undefined> {
  const headOnly = /^HEAD /.test(String(pieces[0]))
  const received = await new Promise<string>((resolve) => {
    const socket = connect(port, '127.0.0.1')
    let text = ''
    const done = (): void => {
      socket.destroy()
      resolve(text)
    }
    // A reset after the answer counts as a close.
    socket.setEncoding('latin1').on('error', done).on('close', done)
    socket.on('data', (chunk: string) => {
      text += chunk
      if (isWhole(text, headOnly)) done()
    })
    for (const piece of pieces) {
      if (piece instanceof Promise) piece.then((bytes) => socket.write(bytes), done)
      else socket.write(piece)
    }
  })
  return received === '' ? undefined : read(received)
}

/**
 * Sends the bytes of a request whose client leaves while the request waits for admission: to start, or to have its body
 * parsed. Resolves when the service has noticed that and goes on with the request.
 */
export async function leaveWhileItWaits (
  { app: { admission, server }, port }: TestApp, bytes: string, step: 'admit' | 'admitBody' = 'admit'
): Promise<void> {
  const left = once(server, 'request').then(async ([, response]) => { await once(response as ServerResponse, 'close') })
  const socket = connect(port, '127.0.0.1')
  await new Promise<void>((resolve) => {
    admission[step] = async () => {
      resolve()
      await left
    }
    socket.write(bytes)
  })
  socket.destroy()
  await left
  Reflect.deleteProperty(admission, step)
}

/**
 * Watches the connections that a server gets from now on.
 *
 * @returns a function that resolves when so many have sent something; a stop closes one that has sent nothing
 */
export function watchConnections (server: Server): (count: number) => Promise<void> {
  const sockets: Socket[] = []
  server.on('connection', (socket: Socket) => { sockets.push(socket) })
  return async (count) => {
    await eventually(() => sockets.filter(({ bytesRead }) => bytesRead > 0).length >= count)
  }
}

/** Finds the end of an answer. Those to HEAD, 204 and 304 end with their head (RFC 9112 section 6.3). */
function isWhole (text: string, headOnly: boolean): boolean {
  const end = text.indexOf('\r\n\r\n')
  if (end < 0) return false
  const length = /^content-length: *(\d+)/im.exec(text.slice(0, end))?.[1]
  if (headOnly || /^HTTP\/1\.1 [23]04 /.test(text)) return true
  return length !== undefined && text.length >= end + 4 + Number(length)
}

function read (received: string): RawAnswer {
  const end = received.indexOf('\r\n\r\n')
  const [start = '', ...fields] = received.slice(0, end).split('\r\n')
  const headers = Object.fromEntries(fields.map((field) => {
    const [name = '', ...value] = field.split(':')
    return [name.toLowerCase(), value.join(':').trim()]
  }))
  const text = Buffer.from(received.slice(end + 4), 'latin1').toString('utf8')
  return { status: Number(start.split(' ')[1]), headers, text, body: parsed(text) }
}

function parsed (text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
