import { connect, type Socket } from 'node:net'
import { once } from 'node:events'
import { performance } from 'node:perf_hooks'
import { randomFrom, requestsOf, requestText, type Scope } from './workloads.ts'

/**
 * Makes the load in a process of its own, with one request in flight on each connection. A bare socket with a minimal
 * HTTP parser costs a third of a complete client. On a small machine the load must not use the CPU that it measures.
 */

export interface Job {
  /** The ports of the processes. The connections are spread over them. */
  ports: number[]
  /** The accounts. If there are several, every tenth request belongs to the first, and the others share the rest. */
  scopes: Scope[]
  workload: string
  connections: number
  seconds: number
  seed: number
  /** The interval between two requests of a connection in ms. Without it, the next follows the answer. */
  everyMs?: number
}

/** The share of the requests that belong to the first of several accounts. */
const FIRST_SCOPE = 0.1

export interface Load {
  requests: number
  /** The number of answers by status. */
  statuses: Record<string, number>
  /** The number of unexpected results, such as `GET 500` or a connection that ended. */
  unexpected: Record<string, number>
  /** The first unexpected answer, shortened. */
  example?: string
  seconds: number
  /** Latency in ms. */
  p50: number
  p99: number
  /** The generator's CPU time as a share of one core. */
  cpu: number
}

async function run ({ ports, scopes, workload, connections, seconds, seed, everyMs = 0 }: Job): Promise<Load> {
  const next = requestsOf(workload)
  const random = randomFrom(seed)
  const latencies: number[] = []
  const statuses: Record<string, number> = {}
  const unexpected: Record<string, number> = {}
  let example: string | undefined
  const sockets = await Promise.all(
    Array.from({ length: connections }, async (_, i) => await open(ports[i % ports.length]!))
  )
  const cpu = process.cpuUsage()
  const start = performance.now()
  const end = start + seconds * 1_000
  await Promise.all(sockets.map(drive))
  const elapsed = performance.now() - start
  const { user, system } = process.cpuUsage(cpu)
  for (const socket of sockets) socket.destroy()
  const sorted = Float64Array.from(latencies).sort()
  return {
    requests: latencies.length,
    statuses,
    unexpected,
    ...(example === undefined ? {} : { example }),
    seconds: elapsed / 1_000,
    p50: sorted[Math.floor(sorted.length * 0.5)] ?? NaN,
    p99: sorted[Math.floor(sorted.length * 0.99)] ?? NaN,
    cpu: (user + system) / 1_000 / elapsed
  }

  function anyScope (): Scope {
    if (scopes.length === 1 || random() < FIRST_SCOPE) return scopes[0]!
    return scopes[1 + Math.floor(random() * (scopes.length - 1))]!
  }

  /** Sends sequential requests until the time is over and the last one is answered. */
  async function drive (socket: Socket): Promise<void> {
    await new Promise<void>((resolve) => {
      let since = 0
      let due = ''
      let text = ''

      function send (): void {
        since = performance.now()
        if (since >= end) return resolve()
        const scope = anyScope()
        const exchange = next(random, scope)
        due = exchange.method === 'POST' ? '201' : '200'
        socket.write(requestText(exchange, scope.key), 'latin1')
      }

      socket.on('data', (chunk) => {
        text += chunk.toString('latin1')
        const head = text.indexOf('\r\n\r\n')
        if (head === -1) return
        const [, length] = /\r\ncontent-length: *(\d+)/i.exec(text) ?? []
        if (text.length < head + 4 + Number(length ?? 0)) return
        latencies.push(performance.now() - since)
        const status = text.slice(9, 12)
        count(statuses, status)
        if (status !== due) {
          count(unexpected, `${status} instead of ${due}`)
          example ??= text.slice(head + 4, head + 400)
        }
        text = ''
        const pause = since + everyMs - performance.now()
        if (pause > 0) setTimeout(send, pause)
        else send()
      })
      socket.on('error', () => {}).on('close', () => {
        if (!socket.writableEnded && performance.now() < end) count(unexpected, 'a connection that ended')
        resolve()
      })
      send()
    })
  }
}

async function open (port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  return socket
}

function count (counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1
}

process.on('message', (job: Job) => {
  run(job).then((load) => { process.send!(load) }, (error: unknown) => {
    console.error(error)
    process.exit(1)
  })
})
process.on('disconnect', () => { process.exit() })
