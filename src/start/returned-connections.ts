import type { Worker } from 'node:cluster'

/** A message of node:cluster that gives a connection to a worker (`seq`), or says whether it takes it (`ack`). */
interface ClusterMessage { act?: string, seq?: number, ack?: number }

/**
 * Gives connections to another worker if theirs ends before it takes them. Node forgets them then, and keeps them
 * open: their clients wait for ever. The messages are private to node:cluster, which acts on them as if the worker had
 * refused the connections, as one does that leaves the port. Where Node has other messages, this does nothing.
 */
export function returnConnections (worker: Worker): void {
  const { process: child } = worker
  const given = new Set<number>()
  const send = child.send.bind(child) as (...args: unknown[]) => boolean
  child.send = (message: unknown, ...rest: unknown[]) => {
    const { act, seq } = (message ?? {}) as ClusterMessage
    if (act === 'newconn' && seq !== undefined) given.add(seq)
    return send(message, ...rest)
  }
  child.on('internalMessage', ({ ack }: ClusterMessage) => { if (ack !== undefined) given.delete(ack) })
  const giveBack = (): void => {
    for (const ack of given) child.emit('internalMessage', { cmd: 'NODE_CLUSTER', ack, accepted: false })
  }
  // While it is connected, node:cluster would give them to the same worker again.
  worker.on('exit', () => { if (worker.isConnected()) worker.once('disconnect', giveBack); else giveBack() })
}
