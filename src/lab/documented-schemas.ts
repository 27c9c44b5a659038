import type { FastifyRequest } from 'fastify'

/** The part of a schema of the document that corruption needs to know. */
export interface Schema {
  $ref?: string
  type?: string
  enum?: unknown[]
  required?: string[]
  properties?: Record<string, Schema>
  items?: Schema
  oneOf?: Schema[]
  discriminator?: { propertyName: string, mapping?: Record<string, string> }
}

/** A schema with what resolves its references. */
export interface DocumentedSchema {
  schema: Schema | undefined
  resolve: (schema: Schema) => Schema
}

interface Answer { $ref?: string, content?: Record<string, { schema?: Schema }> }
interface Operation { operationId: string, responses: Record<string, Answer> }

interface Document {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Schema>, responses?: Record<string, Answer> }
}

/** Returns the schema that the OpenAPI document has for the answer to a request. */
export function documentedSchema ({ server, routeOptions }: FastifyRequest, status: number): DocumentedSchema {
  const { paths, components } = server.swagger() as unknown as Document
  const { operationId } = routeOptions.schema as { operationId: string }
  const operation = Object.values(paths).flatMap((methods) => Object.values(methods))
    .find((candidate) => candidate.operationId === operationId)
  const named = operation?.responses[status]
  const answer = named?.$ref === undefined ? named : components.responses?.[nameIn(named.$ref)]
  return {
    schema: answer?.content?.['application/json']?.schema,
    resolve: (schema) => schema.$ref === undefined ? schema : components.schemas[nameIn(schema.$ref)] ?? {}
  }
}

function nameIn (reference: string): string {
  return reference.split('/').at(-1)!
}
