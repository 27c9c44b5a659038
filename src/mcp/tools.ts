import { toOpenapi31 } from '../openapi/newer-versions.ts'
import type { Operation, Parameter, Reference, Schema } from '../openapi/document.ts'
import type { SharedDocument } from '../openapi/share-components.ts'

/** The sets of tools that `?tools=` names. */
export type ToolSet = 'store' | 'lab' | 'all'

/** A tool as clients of the Model Context Protocol see it. */
export interface Tool {
  name: string
  title: string
  description: string
  inputSchema: { type: 'object', properties: Record<string, Schema>, required: string[], additionalProperties: false }
  annotations: { readOnlyHint: boolean, destructiveHint: boolean, idempotentHint: boolean }
}

/** A tool, and the request that it becomes. */
export interface OperationTool {
  tool: Tool
  sets: ToolSet[]
  method: string
  /** The path of the document, such as `/pets/{petId}`. */
  path: string
  /** The operation needs no API key: its request does not count for the account. */
  isOpen: boolean
  /** Where each argument goes. The argument `body` is the body of the request. */
  parameters: Map<string, { in: string, name: string }>
}

/** What most tasks need. More tools make agents choose worse. */
const STORE = new Set([
  'listPets', 'getPet', 'createPet', 'updatePet', 'deletePet', 'listCategories',
  'listInventory', 'listOrders', 'placeOrder', 'getOrder', 'updateOrder', 'cancelOrder'
])

const JSON_MEDIA = 'application/json'
const REFERENCE = /^#\/components\/(\w+)\/(.+)$/

/** The parts of an OpenAPI 3.1 document that tools are made of. */
interface Document31 {
  components: Record<string, Record<string, unknown>>
  paths: Record<string, Record<string, Operation & { summary: string }>>
}

/**
 * Returns a tool for each operation of the document whose body, if it has one, is JSON.
 *
 * @param readsOnly tells whether a read-only key may use an operation
 */
export function toolsOf (document: SharedDocument, readsOnly: (operationId: string) => boolean): OperationTool[] {
  // Its schemas are those of JSON Schema 2020-12, which tools have, too.
  const newer = toOpenapi31(document) as Document31
  return Object.entries(newer.paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, operation]) => {
      const { requestBody } = operation
      if (requestBody !== undefined && requestBody.content[JSON_MEDIA] === undefined) return []
      return [toolOf(newer, path, method.toUpperCase(), operation, readsOnly(operation.operationId))]
    }))
}

function toolOf (
  document: Document31, path: string, method: string, operation: Document31['paths'][string][string], readOnly: boolean
): OperationTool {
  const { operationId, summary, description, parameters = [], requestBody, tags, responses, security } = operation
  const properties: Record<string, Schema> = {}
  const required: string[] = []
  const places: OperationTool['parameters'] = new Map()
  for (const item of parameters) {
    const { name, in: place, schema, description: text, required: isRequired = false } = resolve(document, item)
    const argument = place === 'header' ? camelCase(name) : name
    properties[argument] = { ...schema, ...text === undefined ? {} : { description: text } }
    if (isRequired) required.push(argument)
    places.set(argument, { in: place, name })
  }
  if (requestBody !== undefined) {
    properties['body'] = requestBody.content[JSON_MEDIA]!.schema!
    if (requestBody.required === true) required.push('body')
  }
  const inputSchema = withDefinitions(document, {
    type: 'object' as const, properties, required, additionalProperties: false as const
  })
  const creates = method === 'POST' && ('201' in responses || '202' in responses)
  return {
    tool: {
      name: operationId,
      title: summary,
      description: [`${summary}.`, description].filter((text) => text !== undefined).join(' '),
      inputSchema,
      annotations: {
        readOnlyHint: readOnly,
        destructiveHint: !readOnly && !creates,
        idempotentHint: readOnly || method === 'PUT' || method === 'DELETE'
      }
    },
    sets: ['all', ...STORE.has(operationId) ? ['store' as const] : [], ...tags.includes('lab') ? ['lab' as const] : []],
    method,
    path,
    isOpen: security?.length === 0,
    parameters: places
  }
}

function resolve (document: Document31, item: Parameter | Reference): Parameter {
  if (!('$ref' in item)) return item
  const [, kind = '', name = ''] = REFERENCE.exec(item.$ref)!
  return document.components[kind]![name] as Parameter
}

/** `Idempotency-Key` becomes `idempotencyKey`. */
function camelCase (field: string): string {
  return field.toLowerCase().replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
}

/** Copies the components that a schema refers to into the schema itself: a tool has no document around it. */
function withDefinitions<S extends object> (document: Document31, schema: S): S {
  const definitions: Record<string, unknown> = {}
  const pending: string[] = []
  const localize = (value: unknown): unknown => JSON.parse(JSON.stringify(value), (key, member: unknown) => {
    const [, , name] = key === '$ref' && typeof member === 'string' ? REFERENCE.exec(member) ?? [] : []
    if (name === undefined) return member
    if (!(name in definitions)) {
      definitions[name] = true
      pending.push(name)
    }
    return `#/$defs/${name}`
  })
  const local = localize(schema) as S
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    definitions[name] = localize(document.components['schemas']![name])
  }
  return Object.keys(definitions).length === 0 ? local : { ...local, $defs: definitions }
}
