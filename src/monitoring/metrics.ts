import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { DeliveryResult, Instrumentation, Queue } from './instrumentation.ts'
import { OperationalError } from '../operational-error.ts'

interface MetricsOptions {
  host: string
  port: number
}

/** From half a millisecond, a read that is alone, to the 10 s after which nobody waits any more. */
const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** Powers of two up to the largest group of writes. */
const SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256]

const OUTCOMES: Record<DeliveryResult, string> = {
  accepted: 'accepted', again: 'retried', givenUp: 'given_up', gone: 'gone', released: 'released'
}

/**
 * Metrics for Prometheus, on a port of their own: whoever may ask the service need not see them, and they
 * can be asked for while nobody may ask the service. Loaded only where METRICS_PORT is set.
 */
export const metrics = fp(async function metrics (app: FastifyInstance, { host, port }: MetricsOptions) {
  const register = new Registry()
  const registers = [register]
  collectDefaultMetrics({ register })
  countRequests(app, registers)
  app.instrumentation = instrumentation(registers)

  const listener = Fastify({ forceCloseConnections: true })
  listener.get('/metrics', async (_request, reply) => reply.type(register.contentType).send(await register.metrics()))

  app.addHook('onReady', async () => {
    try {
      app.log.info(`Metrics are served at ${await listener.listen({ host, port })}/metrics`)
    } catch (error) {
      const { code } = error as { code?: string }
      if (code !== 'EADDRINUSE' && code !== 'EACCES') throw error
      throw new OperationalError(`METRICS_PORT ${port} ${code === 'EACCES' ? 'may not be listened on' : 'is in use'}. Set it to another, or to nothing.`)
    }
  })
  // Asked until the end: how the last requests went is part of it.
  app.addHook('onClose', async () => { await listener.close() })
}, { name: 'metrics' })

function countRequests (app: FastifyInstance, registers: Registry[]): void {
  const requests = new Counter({ name: 'http_requests_total', help: 'Requests answered, by operation and status', labelNames: ['operation', 'status'], registers })
  const duration = new Histogram({ name: 'http_request_duration_seconds', help: 'From the head of a request to the end of its answer; without streams', labelNames: ['operation'], buckets: SECONDS, registers })
  const deprecated = new Counter({ name: 'petstore_deprecated_requests_total', help: 'Requests to deprecated operations', labelNames: ['operation'], registers })

  app.addHook('onResponse', (request, reply, done) => {
    const operation = operationOf(request)
    requests.inc({ operation, status: reply.statusCode })
    if (!isStream(reply)) duration.observe({ operation }, reply.elapsedTime / 1000)
    if (isDeprecated(request)) deprecated.inc({ operation })
    done()
  })
}

/** The operationId; a service route by its pattern; one name for all that no route takes, or strangers could make up any number. */
function operationOf ({ is404, routeOptions: { schema, url } }: FastifyRequest): string {
  return is404 || url === undefined || url === '*' ? 'none' : (schema as { operationId?: string } | undefined)?.operationId ?? url
}

function isStream (reply: FastifyReply): boolean {
  return String(reply.getHeader('content-type')).startsWith('text/event-stream')
}

function isDeprecated ({ routeOptions: { schema } }: FastifyRequest): boolean {
  return (schema as { deprecated?: boolean } | undefined)?.deprecated === true
}

function instrumentation (registers: Registry[]): Instrumentation {
  const labelNames = ['queue']
  const depths = new Map<Queue, () => number>()
  const size = new Histogram({ name: 'petstore_batch_size', help: 'Requests that shared a statement of reads, or a transaction of writes', labelNames, buckets: SIZES, registers })
  const wait = new Histogram({ name: 'petstore_batch_wait_seconds', help: 'How long the first request of a batch waited for it to begin', labelNames, buckets: SECONDS, registers })
  const duration = new Histogram({ name: 'petstore_batch_duration_seconds', help: 'How long a batch took, with the wait for a connection', labelNames, buckets: SECONDS, registers })
  const errors = new Counter({ name: 'petstore_errors_total', help: 'Errors answered, by their code', labelNames: ['code'], registers })
  const deliveries = new Counter({ name: 'petstore_deliveries_total', help: 'Deliveries to webhooks, by what became of them', labelNames: ['outcome'], registers })
  const call = new Histogram({ name: 'petstore_delivery_duration_seconds', help: 'How long calls to webhooks took', buckets: SECONDS, registers })
  for (const outcome of Object.values(OUTCOMES)) deliveries.inc({ outcome }, 0)
  const depth = new Gauge({
    name: 'petstore_queue_depth',
    help: 'Requests that wait for the database; at QUEUE_LIMIT the next is refused',
    labelNames,
    registers,
    collect: () => { for (const [queue, ask] of depths) depth.set({ queue }, ask()) }
  })
  return {
    queue: (queue, ask) => { depths.set(queue, ask) },
    batchStarted: (queue, ms) => { wait.observe({ queue }, ms / 1000) },
    batchFinished (queue, requests, ms) {
      size.observe({ queue }, requests)
      duration.observe({ queue }, ms / 1000)
    },
    errorSent: (code) => { errors.inc({ code }) },
    deliveryFinished (outcome, ms) {
      deliveries.inc({ outcome: OUTCOMES[outcome] })
      if (ms !== undefined) call.observe(ms / 1000)
    }
  }
}
