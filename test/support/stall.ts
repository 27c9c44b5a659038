import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** A proxy that can stop forwarding in both directions, and continue later. */
export interface StallingNetwork {
  url: string
  stall: () => void
  /** Stops forwarding what the server sends on the connections that exist. Later ones work. */
  silence: () => void
  goOn: () => void
}

/** Opens a proxy for the server of a URL. */
export async function stallingNetwork (
  t: { teardown: (action: () => unknown) => void }, to: string
): Promise<StallingNetwork> {
  const { hostname, port } = new URL(to)
  const sockets = new Set<Socket>()
  const servers = new Set<Socket>()
  let stalled = false
  const server = createServer((near) => {
    const far = connect(Number(port), hostname)
    servers.add(far)
    far.on('close', () => { servers.delete(far) })
    for (const [from, into] of [[near, far], [far, near]] as const) {
      sockets.add(from)
      from.on('data', (bytes: Buffer) => { into.write(bytes) }).on('error', () => {}).on('close', () => {
        sockets.delete(from)
        into.destroy()
      })
      if (stalled) from.pause()
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const url = new URL(to)
  url.port = String((server.address() as AddressInfo).port)
  return {
    url: url.href,
    stall () {
      stalled = true
      for (const socket of sockets) socket.pause()
    },
    silence () {
      for (const socket of servers) socket.pause()
    },
    goOn () {
      stalled = false
      for (const socket of sockets) socket.resume()
    }
  }
}
