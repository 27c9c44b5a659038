import swagger from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { hasLab, type Config } from '../config.ts'
import * as commonErrors from '../errors.ts'
import type { ErrorClass } from '../errors.ts'
import { packageInfo } from '../folders.ts'
import type { Resource } from '../resource.ts'
import { codeSamples } from './code-samples.ts'
import type { Document, Sample, Schema } from './document.ts'
import { HEADERS } from './headers.ts'
import { completeOperation, type Facts } from './complete-operations.ts'
import { catalogRoutes, documentRoutes } from './document-routes.ts'
import { PLACEHOLDER_ORIGIN } from './origin.ts'
import { shareComponents } from './share-components.ts'
import { introduction, navigation, tagsInOrder } from './description.ts'
import { announceLimits } from './rate-limit-fields.ts'
import { relaxReplaceable } from './replaceable-answers.ts'
import { viewerRoutes } from './viewer-routes.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The errors that are specific to this operation. The document adds the common errors to every operation. */
    errors?: ErrorClass[]
    /** The operation can also answer with a stream of events. */
    stream?: boolean
    /** Other media types of the list, each with the schema of its content or of a message. */
    representations?: Record<string, object>
    /** The operation that reads the new record, if no operation reads an item of the collection. */
    readBy?: string
    /** The path of the collection that the new record belongs to, if it is not the operation's own. */
    collection?: string
    /**
     * Examples of parameters by name, and of the `body`, where those of the schemas do not fit. Every example of the
     * document succeeds when it is sent to the demo store.
     */
    examples?: Record<string, unknown>
  }
}

export interface OpenapiOptions {
  config: Config
  resources: Resource[]
}

/** Returns all error classes of the service: the common ones, and then those of each resource. */
export function allErrors (resources: Resource[]): ErrorClass[] {
  const common = Object.values(commonErrors).filter((value): value is ErrorClass => 'exampleValues' in value)
  return [...common, ...resources.flatMap(({ errors }) => Object.values(errors))]
}

/**
 * Builds the OpenAPI document from the schemas of the routes. Adds error responses to the document only: Fastify would
 * compile a serializer for each of them if they were schemas of the routes.
 */
export const openapi = fp(async function openapi (app: FastifyInstance, { config, resources }: OpenapiOptions) {
  const { BASE_PATH, PUBLIC_URL } = config
  const server = (PUBLIC_URL || PLACEHOLDER_ORIGIN) + BASE_PATH
  const facts = new Map<string, Facts>()
  const samples: Record<string, Sample[]> = {}
  const errorsOfAll = resources.flatMap(({ errorsOfAll = [] }) => errorsOfAll)

  await app.register(swagger, {
    openapi: {
      openapi: '3.0.3',
      info: {
        title: 'Petstore',
        version: '1.0.0',
        description: introduction(server, hasLab(config)),
        contact: { name: 'Report a problem', url: packageInfo.bugs },
        license: { name: 'MIT', url: 'https://opensource.org/license/mit' }
      },
      servers: [{ url: server, description: 'This service' }],
      components: {
        headers: HEADERS as never,
        securitySchemes: {
          bearerAuth: {
            type: 'http',
            scheme: 'bearer',
            description: 'An API key of an account, sent as `Authorization: Bearer <API_KEY>`. `POST /accounts` ' +
              'returns the first one.'
          }
        }
      },
      security: [{ bearerAuth: [] }]
    },
    stripBasePath: false,
    refResolver: { buildLocalReference: (json, _base, _fragment, i) => (json.$id as string | undefined) ?? `def-${i}` },
    transform ({ schema, url, route }) {
      if (schema?.operationId !== undefined) {
        const descriptions = descriptionsOf(schema.querystring as Schema | undefined)
        facts.set(schema.operationId, { ...route.config, descriptions })
      }
      return { schema, url: url.slice(BASE_PATH.length) }
    },
    transformObject (built) {
      const document = ('openapiObject' in built ? built.openapiObject : {}) as unknown as Document
      document.paths = inOrderOfTags(document.paths, tagsInOrder(resources).map(({ name }) => name))
      const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
        Object.entries(methods).map(([method, operation]) => ({ path, method, operation })))
      for (const { path, method, operation } of operations) {
        const own = facts.get(operation.operationId) ?? {}
        const replacing = operation.security === undefined ? errorsOfAll : []
        const errors = [...own.errors ?? [], ...replacing]
        completeOperation(document, path, method, { ...own, errors })
        announceLimits(operation, config)
        relaxReplaceable(operation, replacing)
      }
      for (const { path, method, operation } of operations) {
        samples[operation.operationId] = codeSamples(document, server, path, method)
      }
      document.components.headers = referencedHeaders(document)
      openAnswers(document)
      return shareComponents({ ...document, ...navigation(resources) })
    }
  })

  const base = { prefix: BASE_PATH }
  await app.register(documentRoutes, base)
  await app.register(viewerRoutes, { ...base, samples })
  await app.register(catalogRoutes)
}, { name: 'openapi' })

/** Returns the header components that a response refers to. Optional fields are copied into responses instead. */
function referencedHeaders (document: Document): Document['components']['headers'] {
  const paths = JSON.stringify(document.paths)
  const isReferenced = (name: string): boolean => paths.includes(`"#/components/headers/${name}"`)
  return Object.fromEntries(Object.entries(document.components.headers).filter(([name]) => isReferenced(name)))
}

/** Sorts paths by the tags of their operations. `/account` comes last, and `delete` is its last method. */
function inOrderOfTags (paths: Document['paths'], tags: string[]): Document['paths'] {
  const rank = ([path, methods]: [string, Document['paths'][string]]): number =>
    path === '/account' ? tags.length : tags.indexOf(Object.values(methods)[0]!.tags[0]!)
  return Object.fromEntries(Object.entries(paths).sort((a, b) => rank(a) - rank(b)))
}

/** Returns the descriptions of the members of an object, by name. */
function descriptionsOf ({ properties = {} }: Schema = {}): Record<string, string> {
  const described = Object.entries(properties).filter(([, { description }]) => description !== undefined)
  return Object.fromEntries(described.map(([name, { description }]) => [name, description!]))
}

/**
 * Says of every object of responses that it may get more members: some clients would refuse one that they do not know.
 * The schemas of the routes do not say so, because the serializer would write members that no schema names.
 */
function openAnswers ({ components: { schemas } }: Document): void {
  for (const schema of Object.values(schemas)) {
    if (schema.type === 'object') schema.additionalProperties ??= true
  }
}
