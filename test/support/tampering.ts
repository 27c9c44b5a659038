import { openProxy } from './proxy.ts'

/** What becomes of the bytes that a client sends: others of the same length, or the end of its connection. */
export type Tamper = (bytes: Buffer) => Buffer | 'drop' | 'drop the answer'

/** A proxy that changes what clients send to a server, and counts how often they wait for it. */
export interface TamperingNetwork {
  url: string
  tamper: Tamper
  /** Returns how often a client waited for an answer, on the connections that have sent a text. */
  roundTripsWith: (text: string) => number
}

interface Connection {
  isWaiting: boolean
  roundTrips: number
  sent: string
}

/** Opens a proxy for the server of a URL. */
export async function tamperingNetwork (
  t: { teardown: (action: () => unknown) => void }, to: string
): Promise<TamperingNetwork> {
  const connections: Connection[] = []
  const network: TamperingNetwork = {
    url: '',
    tamper: (bytes) => bytes,
    roundTripsWith: (text) => connections.filter(({ sent }) => sent.includes(text))
      .reduce((sum, { roundTrips }) => sum + roundTrips, 0)
  }
  const { url } = await openProxy(t, to, (near, far) => {
    const connection: Connection = { isWaiting: false, roundTrips: 0, sent: '' }
    connections.push(connection)
    let isSilent = false
    near.on('data', (bytes: Buffer) => {
      connection.sent += bytes.toString('latin1')
      if (!connection.isWaiting) connection.roundTrips++
      connection.isWaiting = true
      const changed = network.tamper(bytes)
      isSilent ||= changed === 'drop the answer'
      if (changed === 'drop') near.destroy()
      else far.write(Buffer.isBuffer(changed) ? changed : bytes)
    })
    far.on('data', (bytes: Buffer) => {
      connection.isWaiting = false
      if (isSilent) near.destroy()
      else near.write(bytes)
    })
  })
  network.url = url
  return network
}

/** Replaces a text by one of the same length, wherever it ends a string of the protocol. */
export function replacing (text: string, other: string): Tamper {
  return (bytes) => Buffer.from(bytes.toString('latin1').replaceAll(`${text}\0`, `${other}\0`), 'latin1')
}
