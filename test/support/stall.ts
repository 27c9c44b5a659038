import type { Socket } from 'node:net'
import { openProxy } from './proxy.ts'

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
  const servers = new Set<Socket>()
  let stalled = false
  const { url, sockets } = await openProxy(t, to, (near, far) => {
    servers.add(far)
    far.on('close', () => { servers.delete(far) })
    for (const [from, into] of [[near, far], [far, near]] as const) {
      from.on('data', (bytes: Buffer) => { into.write(bytes) })
      if (stalled) from.pause()
    }
  })
  return {
    url,
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
