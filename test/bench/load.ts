import { connect, type Socket } from 'node:net'
import { once } from 'node:events'
import { performance } from 'node:perf_hooks'
import {
  newConnection, ownPet, randomFrom, requestText, statusOf, type Connection, type Exchange, type Scope
} from './requests.ts'
import { requestsOf, workloads } from './workloads.ts'

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

/** The rows that the server must have left, by its answers. */
export interface Left {
  /** Pets, orders and messages; less by each that was deleted. */
  records: number
  /** Events of the writes. A message that is delivered has another one. */
  events: number
  idempotencyRecords: number
}

export interface Load {
  requests: number
  /** The number of answers by status. */
  statuses: Record<string, number>
  left: Left
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
  const left = { records: 0, events: 0, idempotencyRecords: 0 }
  let requests = 0
  let example: string | undefined
  const sockets = await Promise.all(
    Array.from({ length: connections }, async (_, i) => await open(ports[i % ports.length]!))
  )
  const states = sockets.map((_, i) => newConnection(i))
  if (workloads[workload]?.isTagged) await Promise.all(states.map(async (state) => { await readTag(state) }))
  const cpu = process.cpuUsage()
  const start = performance.now()
  const end = start + seconds * 1_000
  await Promise.all(sockets.map(async (socket, i) => { await drive(socket, states[i]!) }))
  const elapsed = performance.now() - start
  const { user, system } = process.cpuUsage(cpu)
  for (const socket of sockets) socket.destroy()
  const sorted = Float64Array.from(latencies).sort()
  return {
    requests,
    statuses,
    left,
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

  /** Reads the entity tag of the connection's pet, which earlier runs have changed. */
  async function readTag (state: Connection): Promise<void> {
    const [scope] = scopes as [Scope]
    const url = `http://127.0.0.1:${ports[0]}/pets/${ownPet(scope, state)}`
    const answer = await fetch(url, { headers: { authorization: `Bearer ${scope.key}` } })
    await answer.text()
    state.etag = answer.headers.get('etag')!
  }

  /** Sends sequential requests until the time is over and the last one is answered. */
  async function drive (socket: Socket, state: Connection): Promise<void> {
    await new Promise<void>((resolve) => {
      let since = 0
      let exchange: Exchange
      let text = ''

      function send (): void {
        since = performance.now()
        if (since >= end) return resolve()
        const scope = anyScope()
        exchange = next(random, scope, state)
        socket.write(requestText(exchange, scope.key), 'latin1')
      }

      socket.on('data', (chunk) => {
        text += chunk.toString('latin1')
        const head = text.indexOf('\r\n\r\n')
        if (head === -1) return
        const [, length] = /\r\ncontent-length: *(\d+)/i.exec(text) ?? []
        if (text.length < head + 4 + Number(length ?? 0)) return
        requests++
        if (exchange.isPreparation !== true) latencies.push(performance.now() - since)
        const status = text.slice(9, 12)
        count(statuses, status)
        if (status !== String(statusOf(exchange))) {
          count(unexpected, `${status} instead of ${statusOf(exchange)}`)
          example ??= text.slice(head + 4, head + 400)
        } else if (exchange.method !== 'GET' && exchange.refusal === undefined) {
          add(left, exchange)
          const answer = text
          exchange.learn?.(state, (name) => new RegExp(`\\r\\n${name}: *([^\\r]*)`, 'i').exec(answer)?.[1])
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

function add (left: Left, { method, headers }: Exchange): void {
  if (method !== 'PATCH') left.records += method === 'POST' ? 1 : -1
  left.events++
  if (headers?.['idempotency-key'] !== undefined) left.idempotencyRecords++
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
