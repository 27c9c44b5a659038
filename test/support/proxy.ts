import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** A proxy in front of a server. */
export interface Proxy {
  /** The URL of the server, with the address of the proxy. */
  url: string
  /** The open sockets, of clients and to the server. */
  sockets: Set<Socket>
}

/**
 * Opens a proxy for the server of a URL. It ends both sides of a connection together.
 *
 * @param forward forwards the bytes of a client (`near`) and of the server (`far`)
 */
export async function openProxy (
  t: { teardown: (action: () => unknown) => void }, to: string, forward: (near: Socket, far: Socket) => void
): Promise<Proxy> {
  const { hostname, port } = new URL(to)
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    const far = connect(Number(port), hostname)
    for (const [one, other] of [[near, far], [far, near]] as const) {
      sockets.add(one)
      one.on('error', () => {}).on('close', () => {
        sockets.delete(one)
        other.destroy()
      })
    }
    forward(near, far)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const url = new URL(to)
  url.port = String((server.address() as AddressInfo).port)
  return { url: url.href, sockets }
}
