/** The parts of an OpenAPI 3.0.3 document that this folder reads or writes. It leaves all other parts unchanged. */

export interface Schema {
  $ref?: string
  type?: string
  description?: string
  example?: unknown
  enum?: unknown[]
  default?: unknown
  items?: Schema
  oneOf?: Schema[]
  allOf?: Schema[]
  format?: string
  minimum?: number
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: boolean
  pattern?: string
  maximum?: number
}

export interface Reference { $ref: string }

export interface Media {
  schema?: Schema
  example?: unknown
  examples?: Record<string, Example | Reference>
}

export interface Example { summary?: string, value: unknown }

export interface Header { description: string, required: boolean, schema: Schema, example?: string | number }

export interface Parameter {
  name: string
  in: string
  required?: boolean
  description?: string
  schema: Schema
  example?: unknown
}

export interface Answer {
  description: string
  headers?: Record<string, Reference>
  content?: Record<string, Media>
  links?: Record<string, Link>
}

export interface Link {
  operationId: string
  parameters?: Record<string, string>
  description?: string
}

/** A sample request in one programming language, in the format that document viewers read. */
export interface Sample { lang: string, label: string, source: string }

export interface Operation {
  operationId: string
  tags: string[]
  description?: string
  deprecated?: boolean
  security?: unknown[]
  parameters?: Parameter[]
  requestBody?: { description?: string, required?: boolean, content: Record<string, Media> }
  responses: Record<string, Answer>
  'x-stability'?: string
  'x-badges'?: Array<{ name: string, label: string }>
  'x-error-codes'?: string[]
}

/**
 * A document whose parameters, responses and examples are written out where they are used. `share` moves those that
 * repeat into components before the document is served.
 */
export interface Document {
  openapi: string
  info: { title: string, version: string, description: string }
  servers: Array<{ url: string }>
  tags: Array<{ name: string, 'x-displayName'?: string }>
  components: { schemas: Record<string, Schema>, headers: Record<string, Header> }
  paths: Record<string, Record<string, Operation>>
}

/** Returns the schema that a reference names, or the schema itself if it is no reference. */
export function resolve ({ components }: Pick<Document, 'components'>, schema: Schema): Schema {
  const name = schema.$ref?.split('/').at(-1)
  return name === undefined ? schema : components.schemas[name] ?? {}
}

/** Returns an example of a schema, composed of the examples of its parts. */
export function exampleOf (document: Pick<Document, 'components'>, schema: Schema): unknown {
  const { example, properties, items, oneOf, enum: values } = resolve(document, schema)
  if (example !== undefined) return example
  if (properties !== undefined) {
    return Object.fromEntries(Object.entries(properties)
      .map(([name, property]) => [name, exampleOf(document, property)]))
  }
  if (items !== undefined) return [exampleOf(document, items)]
  if (oneOf?.[0] !== undefined) return exampleOf(document, oneOf[0])
  return values?.[0]
}
