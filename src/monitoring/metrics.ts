import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { DeliveryResult, Instrumentation, Queue } from './instrumentation.ts'
import { explainListenError } from './metrics-port.ts'
import { onRequestEnd } from './request-end.ts'

interface MetricsOptions {
  host: string
  port: number
}

/** Buckets in seconds: from 0.5 ms, a read without a queue, to the default request timeout of 10 s. */
const DURATION_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** Buckets for batch sizes: powers of two up to the largest group of writes. */
const SIZE_BUCKETS = [1, 2, 4, 8, 16, 32, 64, 128, 256]

/** The values of the label `outcome`. */
const OUTCOMES: Record<DeliveryResult, string> = {
  accepted: 'accepted', retry: 'retried', exhausted: 'given_up', gone: 'gone', returned: 'released'
}

/**
 * Serves metrics for Prometheus on a port of their own. Clients of the service need no access to them, and they stay
 * available while the service rejects requests. Loaded only if METRICS_PORT is set. Of processes that share a port, the
 * primary serves the metrics of all.
 */
export const metrics = fp(async function metrics (app: FastifyInstance, { host, port }: MetricsOptions) {
  const register = new Registry()
  const registers = [register]
  collectDefaultMetrics({ register })
  countRequests(app, registers)
  app.decorate('instrumentation', createInstrumentation(registers))

  const { siblings } = app
  if (siblings !== undefined) {
    siblings.onCall('metrics', async () => await register.getMetricsAsJSON())
    // Closed last, so that the metrics include the last requests.
    app.addHook('onClose', async () => { await siblings.report('metrics', await register.getMetricsAsJSON()) })
    return
  }

  const listener = Fastify({ forceCloseConnections: true })
  listener.get('/metrics', async (_request, reply) =>
    reply.type(register.contentType).send(await register.metrics()))

  app.addHook('onReady', async () => {
    try {
      app.log.info(`Serving metrics at ${await listener.listen({ host, port })}/metrics`)
    } catch (error) {
      throw explainListenError(error as NodeJS.ErrnoException, port)
    }
  })
  // Closed last, as above.
  app.addHook('onClose', async () => { await listener.close() })
}, { name: 'metrics' })

function countRequests (app: FastifyInstance, registers: Registry[]): void {
  const requests = new Counter({
    name: 'http_requests_total',
    help: 'Number of requests, by operation and status; "none" if the connection closed before a response',
    labelNames: ['operation', 'status'],
    registers
  })
  const duration = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Time from the head of a request to the end of its response or connection; excludes event streams',
    labelNames: ['operation'],
    buckets: DURATION_BUCKETS,
    registers
  })
  const deprecated = new Counter({
    name: 'petstore_deprecated_requests_total',
    help: 'Number of requests to deprecated operations',
    labelNames: ['operation'],
    registers
  })

  onRequestEnd(app, (request, reply) => {
    const { operation, isDeprecated } = operationOf(request)
    requests.inc({ operation, status: reply.raw.headersSent ? reply.statusCode : 'none' })
    if (!isStream(reply)) duration.observe({ operation }, reply.elapsedTime / 1000)
    if (isDeprecated) deprecated.inc({ operation })
  })
}

/**
 * Returns the operationId, or the pattern of a route without one, and whether it is deprecated. All requests without a
 * route share the name "none": otherwise clients could create any number of names.
 */
function operationOf (
  { is404, routeOptions: { schema, url } }: FastifyRequest
): { operation: string, isDeprecated: boolean } {
  if (is404 || url === undefined || url === '*') return { operation: 'none', isDeprecated: false }
  const { operationId = url, deprecated = false } = (schema ?? {}) as { operationId?: string, deprecated?: boolean }
  return { operation: operationId, isDeprecated: deprecated }
}

function isStream (reply: FastifyReply): boolean {
  return String(reply.getHeader('content-type')).startsWith('text/event-stream')
}

function createInstrumentation (registers: Registry[]): Instrumentation {
  const errors = new Counter({
    name: 'petstore_errors_total', help: 'Number of error responses, by code', labelNames: ['code'], registers
  })
  return {
    ...batchInstrumentation(registers),
    errorSent: (code) => { errors.inc({ code }) },
    ...deliveryInstrumentation(registers)
  }
}

type BatchInstrumentation = Pick<Instrumentation, 'queue' | 'batchStarted' | 'batchFinished'>

function batchInstrumentation (registers: Registry[]): BatchInstrumentation {
  const labelNames = ['queue']
  const depths = new Map<Queue, () => number>()
  const size = new Histogram({
    name: 'petstore_batch_size',
    help: 'Number of requests in one statement of reads or one transaction of writes',
    labelNames,
    buckets: SIZE_BUCKETS,
    registers
  })
  const wait = new Histogram({
    name: 'petstore_batch_wait_seconds',
    help: 'Time that the first request of a batch waits for the batch to start',
    labelNames,
    buckets: DURATION_BUCKETS,
    registers
  })
  const duration = new Histogram({
    name: 'petstore_batch_duration_seconds',
    help: 'Duration of a batch, including the wait for a connection',
    labelNames,
    buckets: DURATION_BUCKETS,
    registers
  })
  const depth = new Gauge({
    name: 'petstore_queue_depth',
    help: 'Number of requests that wait for the database; at QUEUE_LIMIT, further requests get 503',
    labelNames,
    registers,
    collect: () => { for (const [queue, read] of depths) depth.set({ queue }, read()) }
  })
  return {
    queue: (queue, read) => { depths.set(queue, read) },
    batchStarted: (queue, ms) => { wait.observe({ queue }, ms / 1000) },
    batchFinished (queue, requests, ms) {
      size.observe({ queue }, requests)
      duration.observe({ queue }, ms / 1000)
    }
  }
}

function deliveryInstrumentation (registers: Registry[]): Pick<Instrumentation, 'deliveryFinished'> {
  const deliveries = new Counter({
    name: 'petstore_deliveries_total',
    help: 'Number of delivery attempts to webhooks, by outcome',
    labelNames: ['outcome'],
    registers
  })
  const duration = new Histogram({
    name: 'petstore_delivery_duration_seconds',
    help: 'Duration of requests to webhooks',
    buckets: DURATION_BUCKETS,
    registers
  })
  for (const outcome of Object.values(OUTCOMES)) deliveries.inc({ outcome }, 0)
  return {
    deliveryFinished (result, ms) {
      deliveries.inc({ outcome: OUTCOMES[result] })
      if (ms !== undefined) duration.observe(ms / 1000)
    }
  }
}
