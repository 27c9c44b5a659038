import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { FastifyBaseLogger } from 'fastify'
import { AggregatorRegistry, Registry, type MetricObject } from 'prom-client'
import { explainListenError } from '../monitoring/metrics-port.ts'

type Metrics = MetricObject[]

/** Returns the metrics of each worker that answers. */
type Ask = () => Promise<Array<[worker: number, metrics: unknown]>>

/** Serves the metrics of several processes as one: the sum of most, and of some the mean or the largest. */
export class SharedMetrics {
  /** The last metrics of each worker: one that does not answer keeps them. */
  readonly #latest = new Map<number, Metrics>()
  /** The counts of workers that have ended. Without them sums would fall, which looks like a restart of all. */
  #past: Metrics = []
  /** The workers that have ended. An answer of one can come too late, while others still answer. */
  readonly #ended = new Set<number>()
  readonly #servers: Server[] = []

  set (worker: number, metrics: unknown): void {
    if (Array.isArray(metrics) && !this.#ended.has(worker)) this.#latest.set(worker, metrics as Metrics)
  }

  end (worker: number): void {
    this.#ended.add(worker)
    const counts = (this.#latest.get(worker) ?? []).filter(({ type }) => COUNTS.includes(String(type)))
    this.#latest.delete(worker)
    this.#past = AggregatorRegistry.aggregate([this.#past, counts]).getMetricsAsArray()
  }

  async listen ({ host, port }: { host: string, port: number }, ask: Ask, log: FastifyBaseLogger): Promise<void> {
    const text = async (): Promise<string> => {
      for (const [worker, metrics] of await ask()) this.set(worker, metrics)
      return await AggregatorRegistry.aggregate([this.#past, ...this.#latest.values()]).metrics()
    }
    // Clients try either address of this name first.
    const hosts = host === 'localhost' ? ['127.0.0.1', '::1'] : [host]
    for (const host of hosts) {
      const server = createServer(({ method = '', url }, response) => {
        if (!['GET', 'HEAD'].includes(method) || url?.split('?')[0] !== '/metrics') {
          response.writeHead(404).end()
          return
        }
        text().then(
          (body) => { response.writeHead(200, { 'content-type': Registry.PROMETHEUS_CONTENT_TYPE }).end(body) },
          (error: unknown) => {
            log.error({ err: error }, 'cannot add up the metrics')
            response.writeHead(500).end()
          })
      })
      try {
        await once(server.listen({ host, port }), 'listening')
        this.#servers.push(server)
        port = (server.address() as AddressInfo).port
        log.info(`Serving metrics at http://${host.includes(':') ? `[${host}]` : host}:${port}/metrics`)
      } catch (error) {
        // A machine without IPv6.
        if (this.#servers.length > 0) continue
        throw explainListenError(error as NodeJS.ErrnoException, port)
      }
    }
  }

  close (): void {
    for (const server of this.#servers) {
      server.close()
      server.closeAllConnections()
    }
  }
}

/** Types of metrics that only grow. */
const COUNTS = ['counter', 'histogram']
