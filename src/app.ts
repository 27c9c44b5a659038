import cors, { type FastifyCorsOptions } from '@fastify/cors'
import Fastify, { LogController, type FastifyInstance, type RouteOptions } from 'fastify'
import { accountRoutes, signupRoutes } from './accounts/routes.ts'
import { authentication, requireWriteAccess } from './plugins/authentication.ts'
import { contentTypeParsers } from './plugins/content-type-parsers.ts'
import { categoryRoutes } from './categories/routes.ts'
import { components } from './resources.ts'
import type { Config } from './config.ts'
import { database } from './database/plugin.ts'
import { eventRoutes } from './events/routes.ts'
import { errorHandler } from './plugins/error-handler.ts'
import { MAX_HEAD_BYTES, validateRequestHead, normalizeRequestTarget } from './plugins/request-head.ts'
import { standardHeaders } from './plugins/security-headers.ts'
import { homeRoutes } from './home/routes.ts'
import { acceptIdempotencyKey } from './plugins/idempotency-key.ts'
import { inventoryRoutes } from './inventory/routes.ts'
import { limits } from './plugins/rate-limits.ts'
import { createLogger, requestLogging } from './monitoring/logger.ts'
import { messageRoutes } from './messages/routes.ts'
import { methodNotAllowed } from './plugins/method-not-allowed.ts'
import { openapi } from './openapi/plugin.ts'
import { orderRoutes } from './orders/routes.ts'
import { petRoutes } from './pets/routes.ts'
import { requestId } from './http/request-id.ts'
import { retention } from './events/retention.ts'
import { buildSerializerCompiler } from './http/serializer-compiler.ts'
import { serviceRoutes } from './plugins/health-checks.ts'
import { gracefulShutdown } from './plugins/graceful-shutdown.ts'
import { onClientError, clientErrors } from './plugins/client-errors.ts'
import { terminalDestination } from './monitoring/terminal-format.ts'
import { buildValidatorCompiler, rejectUnknownQuery } from './http/validator-compiler.ts'
import { delivery } from './deliveries/plugin.ts'
import { webhookRoutes } from './webhooks/routes.ts'

/** Builds the service; it neither listens nor reads the environment. */
export async function buildApp (config: Config): Promise<FastifyInstance> {
  const named = Object.fromEntries(components.map((schema) => [schema.$id!, schema]))
  const validator = buildValidatorCompiler(named)
  const serializer = buildSerializerCompiler(named)
  const app = Fastify({
    loggerInstance: createLogger(config, await terminalDestination()),
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'requestId' }),
    genReqId: requestId,
    bodyLimit: config.BODY_LIMIT,
    requestTimeout: config.REQUEST_TIMEOUT_MS,
    http: {
      maxHeaderSize: MAX_HEAD_BYTES,
      // Node holds the one against the other, whose default is 5 minutes, before Fastify sets it.
      requestTimeout: config.REQUEST_TIMEOUT_MS,
      headersTimeout: config.REQUEST_TIMEOUT_MS,
      // Node looks for late requests twice a minute, which would make 10 s up to 40.
      connectionsCheckingInterval: Math.min(config.REQUEST_TIMEOUT_MS, 1_000),
      // Node's own refusal has no body; `judgeHead` refuses in the Error shape.
      requireHostHeader: false
    },
    rewriteUrl: normalizeRequestTarget,
    trustProxy: trusted(config.TRUST_PROXY),
    return503OnClosing: false,
    routerOptions: { maxParamLength: MAX_HEAD_BYTES },
    // Fastify asks for compilers in every plugin; one of each serves them all.
    schemaController: { compilersFactory: { buildValidator: (() => validator) as never, buildSerializer: () => serializer } },
    clientErrorHandler: onClientError
  })

  app.decorate('publicUrl', config.PUBLIC_URL)
  app.decorate('basePath', config.BASE_PATH)
  app.decorateRequest('idempotencyKey', undefined)
  for (const schema of components) app.addSchema(schema)

  errorHandler(app)
  clientErrors(app)
  requestLogging(app)
  standardHeaders(app)
  await app.register(cors, { preflightContinue: true, strictPreflight: false, ...crossOrigin(config) })
  gracefulShutdown(app, config.SHUTDOWN_GRACE_MS)
  validateRequestHead(app)
  methodNotAllowed(app)

  if (config.METRICS_PORT !== undefined) {
    const { metrics } = await import('./monitoring/metrics.ts')
    await app.register(metrics, { host: config.HOST, port: config.METRICS_PORT })
  }
  await app.register(database, {
    url: config.DATABASE_URL,
    pool: config.DATABASE_POOL,
    queueLimit: config.QUEUE_LIMIT,
    timeout: config.REQUEST_TIMEOUT_MS
  })
  await app.register(limits, config)
  if (config.DELIVERY) await app.register(delivery, { allowPrivate: config.WEBHOOKS_ALLOW_PRIVATE })
  await app.register(retention, { days: config.EVENT_RETENTION_DAYS })
  await app.register(authentication)
  await app.register(openapi, config)
  await app.register(homeRoutes, { prefix: config.BASE_PATH, signup: config.SIGNUP })

  await app.register(async function api (app) {
    contentTypeParsers(app)
    app.addHook('onRequest', (_request, reply, done) => {
      reply.header('cache-control', 'private, no-cache')
      done()
    })
    if (config.CORS_ORIGINS === '') app.addHook('onRoute', closeToPages)
    app.addHook('onRoute', rejectUnknownQuery)
    app.addHook('onRoute', acceptIdempotencyKey)

    await app.register(signupRoutes, { open: config.SIGNUP === 'open' })

    await app.register(async function keyHolders (app) {
      app.addHook('onRequest', app.verifyBearerAuth!)
      if (config.RATE_LIMIT_PER_KEY > 0) app.addHook('onRequest', app.limits.perKey)
      app.addHook('onRequest', requireWriteAccess)

      await app.register(accountRoutes)
      await app.register(petRoutes, { sunset: config.PET_READ_SUNSET })
      await app.register(categoryRoutes)
      await app.register(orderRoutes)
      await app.register(inventoryRoutes)
      await app.register(messageRoutes)
      await app.register(eventRoutes)
      await app.register(webhookRoutes, { allowPrivate: config.WEBHOOKS_ALLOW_PRIVATE })
    })
  }, { prefix: config.BASE_PATH })

  await app.register(serviceRoutes)
  return app
}

/** Browsers may read the document from anywhere, and use the API from where CORS_ORIGINS says. */
function crossOrigin ({ CORS_ORIGINS }: Config): FastifyCorsOptions {
  const origins = CORS_ORIGINS.split(',').map((origin) => origin.trim()).filter((origin) => origin !== '')
  return {
    origin: origins.length === 0 ? false : origins.includes('*') ? '*' : origins,
    methods: ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE', 'OPTIONS'],
    allowedHeaders: ['Authorization', 'Content-Type', 'Idempotency-Key', 'If-Match', 'If-None-Match', 'Last-Event-ID', 'Request-Id'],
    exposedHeaders: [
      'ETag', 'Link', 'Location', 'Request-Id', 'Deprecation', 'Sunset', 'Retry-After', 'RateLimit', 'RateLimit-Policy',
      'Idempotency-Replayed', 'Event-Id', 'WWW-Authenticate'
    ]
  }
}

/** A hook: where no page of another origin may read, nothing is worked out for one. */
function closeToPages (route: RouteOptions): void {
  route.config = { ...route.config, cors: false }
}

/** `true`, or a list of proxies' addresses; nobody is believed by default. */
function trusted (setting: string): boolean | string {
  if (setting === 'true') return true
  return setting === 'false' || setting === '' ? false : setting
}
