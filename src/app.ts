import Fastify, { LogController, type FastifyBaseLogger, type FastifyHttpOptions, type FastifyInstance } from 'fastify'
import type { Server } from 'node:http'
import { erasure } from './accounts/erasure.ts'
import { expiry } from './accounts/expiry.ts'
import { signupRoutes } from './accounts/routes.ts'
import { hasLab, type Config } from './config.ts'
import { database } from './database/plugin.ts'
import { deliveryCleanup } from './deliveries/cleanup.ts'
import { delivery } from './deliveries/plugin.ts'
import { retention } from './events/retention.ts'
import { homeRoutes } from './home/routes.ts'
import { namedSchemas, SortOrderSchema } from './http/common-schemas.ts'
import { requestId } from './http/request-id.ts'
import { buildSerializerCompiler } from './http/serializer-compiler.ts'
import { buildValidatorCompiler } from './http/validator-compiler.ts'
import { clockHeader } from './lab/clock-header.ts'
import { createLogger } from './monitoring/logger.ts'
import { requestLogging } from './monitoring/request-logging.ts'
import { terminalDestination } from './monitoring/terminal-format.ts'
import { errorSchemas } from './openapi/error-schemas.ts'
import { allErrors, openapi } from './openapi/plugin.ts'
import { admission } from './plugins/admission.ts'
import { authentication } from './plugins/authentication.ts'
import { clientErrors, onClientError } from './plugins/client-errors.ts'
import { contentTypeParsers } from './plugins/content-type-parsers.ts'
import { serverFactory } from './plugins/connections.ts'
import { cors, corsOff } from './plugins/cors.ts'
import { errorHandler } from './plugins/error-handler.ts'
import { gracefulShutdown } from './plugins/graceful-shutdown.ts'
import { healthChecks } from './plugins/health-checks.ts'
import { localhost } from './plugins/localhost.ts'
import { methodNotAllowed } from './plugins/method-not-allowed.ts'
import { publicUrl } from './plugins/public-url.ts'
import { rateLimits } from './plugins/rate-limits.ts'
import { MAX_HEAD_BYTES, normalizeRequestTarget, requestHead } from './plugins/request-head.ts'
import { requestValidation } from './plugins/request-validation.ts'
import type { Siblings } from './plugins/siblings.ts'
import { securityHeaders } from './plugins/security-headers.ts'
import { parseTrustProxy, trustedProxies } from './plugins/trusted-proxies.ts'
import type { Resource } from './resource.ts'
import { commitOptions, createResources } from './resources.ts'

/**
 * Builds the service. Neither listens nor reads environment variables.
 *
 * @param siblings the other worker processes that share its port
 */
export async function buildApp (config: Config, siblings?: Siblings): Promise<FastifyInstance> {
  const resources = createResources(config)
  const components = [
    ...errorSchemas(allErrors(resources)), SortOrderSchema, ...resources.flatMap(({ schemas }) => namedSchemas(schemas))
  ]
  const app = Fastify(await fastifyOptions(config))
  if (siblings !== undefined) app.decorate('siblings', siblings)
  for (const schema of components) app.addSchema(schema)
  app.setValidatorCompiler(buildValidatorCompiler(app.getSchemas()))
  app.setSerializerCompiler(buildSerializerCompiler(app.getSchemas()))

  // The hooks of these plugins run in this order, which is the contract's order of checks.
  await app.register(publicUrl, config)
  await app.register(trustedProxies, config)
  await app.register(rateLimits, config)
  await app.register(requestLogging)
  if (config.METRICS_PORT !== undefined) {
    const { metrics } = await import('./monitoring/metrics.ts')
    await app.register(metrics, { host: config.HOST, port: config.METRICS_PORT })
  }
  await app.register(errorHandler)
  await app.register(clientErrors)
  await app.register(securityHeaders)
  await app.register(cors, config)
  await app.register(gracefulShutdown, config)
  await app.register(admission)
  await app.register(requestHead)
  await app.register(methodNotAllowed, { lab: hasLab(config) })

  await app.register(database, {
    url: config.DATABASE_URL,
    pool: config.DATABASE_POOL,
    queueLimit: config.QUEUE_LIMIT,
    storedBytesLimit: config.STORED_BYTES_PER_ACCOUNT,
    timeout: config.REQUEST_TIMEOUT_MS,
    ...commitOptions(resources)
  })
  if (config.DELIVERY) await app.register(delivery, { allowPrivate: config.WEBHOOKS_ALLOW_PRIVATE })
  await app.register(deliveryCleanup, { days: config.EVENT_RETENTION_DAYS })
  await app.register(retention, { days: config.EVENT_RETENTION_DAYS })
  await app.register(expiry)
  await app.register(erasure, config)
  await app.register(authentication)
  await app.register(openapi, { config, resources })
  await app.register(homeRoutes, { prefix: config.BASE_PATH, signup: config.SIGNUP, lab: hasLab(config) })
  await app.register(api, { prefix: config.BASE_PATH, config, resources })
  await app.register(healthChecks)
  await app.register(localhost, config)
  return app
}

const PLUGIN_TIMEOUT_MS = 60_000

interface ScopeOptions { config: Config, resources: Resource[] }

/** The scope of all API operations. Of these, only signup needs no API key. */
async function api (app: FastifyInstance, { config, resources }: ScopeOptions): Promise<void> {
  await app.register(contentTypeParsers)
  app.addHook('onRequest', (_request, reply, done) => {
    reply.header('cache-control', 'private, no-cache')
    done()
  })
  if (config.CORS_ORIGINS === '') await app.register(corsOff)
  await app.register(requestValidation)
  if (hasLab(config)) {
    await app.register(clockHeader)
    const { mcp } = await import('./mcp/plugin.ts')
    await app.register(mcp, { errors: allErrors(resources) })
  }

  await app.register(signupRoutes, { open: config.SIGNUP === 'open', ttlSeconds: config.ACCOUNT_TTL_SECONDS })
  await app.register(authenticated, { config, resources })
}

/** The scope of operations that require an API key. */
async function authenticated (app: FastifyInstance, { config, resources }: ScopeOptions): Promise<void> {
  app.addHook('onRoute', (route) => { route.config = { ...route.config, authenticated: true } })
  app.addHook('onRequest', app.verifyBearerAuth!)
  for (const { observers } of resources) if (observers !== undefined) await app.register(observers)
  if (config.RATE_LIMIT_PER_ACCOUNT > 0) app.addHook('onRequest', app.limits.perAccount)
  for (const { limits } of resources) if (limits !== undefined) await app.register(limits)
  app.addHook('onRequest', app.requireWriteAccess)

  for (const { hooks } of resources) if (hooks !== undefined) await app.register(hooks)
  for (const resource of resources) await app.register(operations, resource)
}

/** The scope of a resource, whose operations have its tag. */
async function operations (app: FastifyInstance, { tag, routes }: Pick<Resource, 'tag' | 'routes'>): Promise<void> {
  app.addHook('onRoute', ({ schema }) => { if (schema !== undefined && tag !== undefined) schema.tags ??= [tag.name] })
  await app.register(routes)
}

async function fastifyOptions (config: Config): Promise<FastifyHttpOptions<Server, FastifyBaseLogger>> {
  const logger = createLogger(config, await terminalDestination())
  return {
    serverFactory: serverFactory(config, logger),
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'requestId' }),
    genReqId: requestId,
    bodyLimit: config.BODY_LIMIT,
    rewriteUrl: normalizeRequestTarget,
    trustProxy: parseTrustProxy(config.TRUST_PROXY),
    return503OnClosing: false,
    // Loading the code of the database takes longer than the default of 10 s on a busy machine with a cold disk.
    pluginTimeout: PLUGIN_TIMEOUT_MS,
    routerOptions: { maxParamLength: MAX_HEAD_BYTES },
    clientErrorHandler: onClientError
  }
}
