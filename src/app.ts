import Fastify, { LogController, type FastifyBaseLogger, type FastifyHttpOptions, type FastifyInstance } from 'fastify'
import type { Server } from 'node:http'
import { accountRoutes, signupRoutes } from './accounts/routes.ts'
import { categoryRoutes } from './categories/routes.ts'
import type { Config } from './config.ts'
import { database } from './database/plugin.ts'
import { deliveryCleanup } from './deliveries/cleanup.ts'
import { delivery } from './deliveries/plugin.ts'
import { retention } from './events/retention.ts'
import { eventRoutes } from './events/routes.ts'
import { homeRoutes } from './home/routes.ts'
import { requestId } from './http/request-id.ts'
import { buildSerializerCompiler } from './http/serializer-compiler.ts'
import { buildValidatorCompiler } from './http/validator-compiler.ts'
import { inventoryRoutes } from './inventory/routes.ts'
import { messageRoutes } from './messages/routes.ts'
import { createLogger } from './monitoring/logger.ts'
import { requestLogging } from './monitoring/request-logging.ts'
import { terminalDestination } from './monitoring/terminal-format.ts'
import { openapi } from './openapi/plugin.ts'
import { orderRoutes } from './orders/routes.ts'
import { petRoutes } from './pets/routes.ts'
import { authentication } from './plugins/authentication.ts'
import { clientErrors, onClientError } from './plugins/client-errors.ts'
import { contentTypeParsers } from './plugins/content-type-parsers.ts'
import { cors, corsOff } from './plugins/cors.ts'
import { errorHandler } from './plugins/error-handler.ts'
import { gracefulShutdown } from './plugins/graceful-shutdown.ts'
import { healthChecks } from './plugins/health-checks.ts'
import { idempotencyKey } from './plugins/idempotency-key.ts'
import { methodNotAllowed } from './plugins/method-not-allowed.ts'
import { publicUrl } from './plugins/public-url.ts'
import { queryValidation } from './plugins/query-validation.ts'
import { rateLimits } from './plugins/rate-limits.ts'
import { MAX_HEAD_BYTES, normalizeRequestTarget, requestHead } from './plugins/request-head.ts'
import { securityHeaders } from './plugins/security-headers.ts'
import { components } from './resources.ts'
import { webhookRoutes } from './webhooks/routes.ts'

/** Builds the service. Neither listens nor reads environment variables. */
export async function buildApp (config: Config): Promise<FastifyInstance> {
  const app = Fastify(await fastifyOptions(config))
  for (const schema of components) app.addSchema(schema)

  // The hooks of these plugins run in this order, which is the contract's order of checks.
  await app.register(publicUrl, config)
  await app.register(rateLimits, config)
  await app.register(errorHandler)
  await app.register(clientErrors)
  await app.register(requestLogging)
  await app.register(securityHeaders)
  await app.register(cors, config)
  await app.register(gracefulShutdown, config)
  await app.register(requestHead)
  await app.register(methodNotAllowed)

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
  if (config.DELIVERY) await app.register(delivery, { allowPrivate: config.WEBHOOKS_ALLOW_PRIVATE })
  await app.register(deliveryCleanup)
  await app.register(retention, { days: config.EVENT_RETENTION_DAYS })
  await app.register(authentication)
  await app.register(openapi, config)
  await app.register(homeRoutes, { prefix: config.BASE_PATH, signup: config.SIGNUP })
  await app.register(api, { prefix: config.BASE_PATH, config })
  await app.register(healthChecks)
  return app
}

interface ScopeOptions { config: Config }

/** The scope of all API operations. Of these, only signup needs no API key. */
async function api (app: FastifyInstance, { config }: ScopeOptions): Promise<void> {
  await app.register(contentTypeParsers)
  app.addHook('onRequest', (_request, reply, done) => {
    reply.header('cache-control', 'private, no-cache')
    done()
  })
  if (config.CORS_ORIGINS === '') await app.register(corsOff)
  await app.register(queryValidation)
  await app.register(idempotencyKey)

  await app.register(signupRoutes, { open: config.SIGNUP === 'open' })
  await app.register(authenticated, { config })
}

/** The scope of operations that require an API key. */
async function authenticated (app: FastifyInstance, { config }: ScopeOptions): Promise<void> {
  app.addHook('onRequest', app.verifyBearerAuth!)
  if (config.RATE_LIMIT_PER_KEY > 0) app.addHook('onRequest', app.limits.perKey)
  app.addHook('onRequest', app.requireWriteAccess)

  await app.register(accountRoutes)
  await app.register(petRoutes, { sunset: config.PET_READ_SUNSET })
  await app.register(categoryRoutes)
  await app.register(orderRoutes)
  await app.register(inventoryRoutes)
  await app.register(messageRoutes)
  await app.register(eventRoutes)
  await app.register(webhookRoutes, { allowPrivate: config.WEBHOOKS_ALLOW_PRIVATE })
}

async function fastifyOptions (config: Config): Promise<FastifyHttpOptions<Server, FastifyBaseLogger>> {
  const schemas = Object.fromEntries(components.map((schema) => [schema.$id!, schema]))
  const validator = buildValidatorCompiler(schemas)
  const serializer = buildSerializerCompiler(schemas)
  return {
    loggerInstance: createLogger(config, await terminalDestination()),
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'requestId' }),
    genReqId: requestId,
    bodyLimit: config.BODY_LIMIT,
    requestTimeout: config.REQUEST_TIMEOUT_MS,
    http: {
      maxHeaderSize: MAX_HEAD_BYTES,
      // Node compares these two when it creates the server. Fastify sets its own later than that, and until then the
      // default of 5 minutes applies.
      requestTimeout: config.REQUEST_TIMEOUT_MS,
      headersTimeout: config.REQUEST_TIMEOUT_MS,
      // By default, Node checks for late requests every 30 s: a timeout of 10 s would take up to 40 s.
      connectionsCheckingInterval: Math.min(config.REQUEST_TIMEOUT_MS, 1_000),
      // Node's own response has no body; the plugin request-head sends the Error shape.
      requireHostHeader: false
    },
    rewriteUrl: normalizeRequestTarget,
    trustProxy: parseTrustProxy(config.TRUST_PROXY),
    return503OnClosing: false,
    routerOptions: { maxParamLength: MAX_HEAD_BYTES },
    // Fastify asks for compilers in every scope; all scopes share these two.
    schemaController: {
      compilersFactory: { buildValidator: (() => validator) as never, buildSerializer: () => serializer }
    },
    clientErrorHandler: onClientError
  }
}

/** Returns `true`, `false` or the trusted addresses of proxies. By default no proxy is trusted. */
function parseTrustProxy (setting: string): boolean | string {
  if (setting === 'true') return true
  return setting === 'false' || setting === '' ? false : setting
}
