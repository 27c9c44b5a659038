import type { FastifyInstance } from 'fastify'
import type { Client } from './app.ts'
import { expandComponents } from './expand-components.ts'
import { createRecords, loadFixtures, type CreatedIds, type Id } from './fixture.ts'

/** The part of a JSON schema that tests are generated from. */
export interface Schema {
  $ref?: string
  type?: string
  format?: string
  enum?: string[]
  nullable?: boolean
  minimum?: number
  minLength?: number
  maxLength?: number
  items?: Schema
  example?: unknown
  required?: string[]
  minProperties?: number
  properties?: Record<string, Schema>
}

export interface Operation {
  operationId: string
  tags: string[]
  method: string
  /** With `{name}` where a parameter goes. */
  path: string
  parameters: Array<{ name: string, in: string, schema: Schema }>
  /** The schema of its body, if it takes one. */
  body: Schema | undefined
  /** The type of its body, which is JSON or lines of it. */
  mediaType: string | undefined
}

/** Every operation, read from the service's own document, so that a new one is tested from its first day. */
export function operationsOf (app: FastifyInstance): Operation[] {
  const document = expandComponents(app.swagger()) as unknown as Document
  const resolve = (schema: Schema): Schema => {
    const found = schema.$ref === undefined ? schema : document.components.schemas[schema.$ref.split('/').at(-1)!]!
    const { items, properties } = found
    return {
      ...found,
      ...(items === undefined ? {} : { items: resolve(items) }),
      ...(properties === undefined
        ? {}
        : {
            properties: Object.fromEntries(Object.entries(properties).map(([name, inner]) => [name, resolve(inner)]))
          })
    }
  }
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId, tags, parameters = [], requestBody }]) => {
      const { content } = requestBody ?? {}
      const body = content?.['application/json']?.schema ?? (content?.['application/x-ndjson'] && LINE)
      return {
        operationId,
        tags,
        method: method.toUpperCase(),
        path,
        parameters: parameters.map((parameter) => ({ ...parameter, schema: resolve(parameter.schema) })),
        body: body === undefined ? undefined : resolve(body),
        mediaType: Object.keys(content ?? {})[0]
      }
    }))
}

/** Operations that change nothing, although their method is POST. */
export const READING_POSTS = ['verifyRequests']
/** One line of a file: a store with a category. */
const LINE: Schema = {
  type: 'object',
  required: ['type', 'id', 'name'],
  properties: { type: { example: 'category' }, id: { example: 4 }, name: { example: 'Cats' } }
}

interface Document {
  paths: Record<string, Record<string, {
    operationId: string
    tags: string[]
    parameters?: Operation['parameters']
    requestBody?: { content: Record<string, { schema: Schema }> }
  }>>
  components: { schemas: Record<string, Schema> }
}

/** The ids of one record of each resource. Tests refer to some of them by name. */
export type Ids = CreatedIds & Record<'petId' | 'categoryId' | 'orderId', Id>

export async function stockedStore (client: Client): Promise<Ids> {
  return await createRecords(client, await loadFixtures()) as Ids
}

/** The address of an operation on the store's own records. */
export function pathOf ({ path }: Operation, ids: Record<string, number | string>): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => String(ids[name]))
}

/** A body that the operation accepts: what is required, and `fields`. */
export function bodyOf (
  { body }: Operation,
  ids: Ids,
  fields: Record<string, unknown> = {}
): Record<string, unknown> | undefined {
  if (body === undefined) return undefined
  // A body that needs one of its members, whichever.
  if (body.minProperties !== undefined && Object.keys(fields).length === 0) {
    return body.example as Record<string, unknown>
  }
  const required = (body.required ?? []).map((name) => [name, ids[name] ?? body.properties?.[name]?.example] as const)
  // A member that has no example of its own is in that of the body.
  const whole = required.some(([, value]) => value === undefined) ? body.example as Record<string, unknown> : {}
  return { ...whole, ...Object.fromEntries(required.filter(([, value]) => value !== undefined)), ...fields }
}
