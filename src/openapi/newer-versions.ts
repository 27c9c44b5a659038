import { MERGE_PATCH } from '../plugins/content-type-parsers.ts'
import type { Answer, Media, Operation, Reference, Schema } from './document.ts'
import { convertSchemas } from './json-schema.ts'
import type { SharedDocument } from './share-components.ts'
import { eventWebhooks, SIGNATURE_HEADERS, WebhookTestEventSchema } from './webhook-requests.ts'

/** A copy of the document, whose operations and components may be changed. */
interface Copy extends Omit<SharedDocument, 'paths'> {
  paths: Record<string, Record<string, Operation>>
  'x-tagGroups'?: Array<{ name: string, tags: string[] }>
}

interface Tag { name: string, description: string, 'x-displayName'?: string, 'x-parent'?: string }

const JSON_MEDIA = 'application/json'
const STREAM = 'text/event-stream'

/**
 * Returns the document as OpenAPI 3.1: schemas of JSON Schema 2020-12, both media types of a patch, the codes of each
 * error response as an enumeration, and the requests that webhooks receive.
 */
export function toOpenapi31 (document: SharedDocument): object {
  return convertSchemas(describeMore(document, '3.1.1'))
}

/** Returns the document as OpenAPI 3.2: as 3.1, with the type of each message of the event stream, and nested tags. */
export function toOpenapi32 (document: SharedDocument): object {
  const copy = describeMore(document, '3.2.0')
  for (const { get } of Object.values(copy.paths)) {
    const stream = get?.responses['200']?.content?.[STREAM] as Media & { itemSchema?: Schema } | undefined
    if (stream?.schema === undefined) continue
    stream.itemSchema = stream.schema
    delete stream.schema
    delete stream.example
  }
  const { 'x-tagGroups': groups = [], ...rest } = copy
  return convertSchemas({ ...rest, tags: nestedTags(copy.tags as Tag[], groups) })
}

function describeMore (document: SharedDocument, version: string): Copy {
  // A deep copy: the parts that change are shared with the document of version 3.0.3.
  const copy = JSON.parse(JSON.stringify({ ...document, openapi: version })) as Copy
  const { schemas, parameters, responses } = copy.components
  schemas['WebhookTestEvent'] = WebhookTestEventSchema
  describeStreamData(schemas['EventStreamMessage'], 'Event')
  describeStreamData(schemas['RequestStreamMessage'], 'RecordedRequest')
  Object.assign(parameters, SIGNATURE_HEADERS)
  for (const answer of Object.values(responses)) narrowCodes(answer)
  for (const [, methods] of Object.entries(copy.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const { requestBody } = operation
      if (method === 'patch') requestBody!.content[MERGE_PATCH] = requestBody!.content[JSON_MEDIA]!
      for (const answer of Object.values(operation.responses)) narrowCodes(answer)
      // The schemas of the responses name the codes.
      delete operation['x-error-codes']
    }
  }
  return Object.assign(copy, { webhooks: eventWebhooks(schemas) })
}

/** Narrows the code of an error response to those of its examples. */
function narrowCodes (answer: Answer | Reference): void {
  if ('$ref' in answer) return
  const media = answer.content?.[JSON_MEDIA]
  if (media?.schema?.$ref !== '#/components/schemas/Error') return
  const codes = Object.keys(media.examples ?? {})
  const narrowed: Schema = { type: 'object', required: ['code'], properties: { code: { type: 'string', enum: codes } } }
  media.schema = { allOf: [media.schema, narrowed] }
}

/** Names the schema of the JSON text that a message of the stream contains. */
function describeStreamData (message: Schema | undefined, content: string): void {
  const data = message?.properties?.['data']
  if (data === undefined) return
  Object.assign(data, { contentMediaType: JSON_MEDIA, contentSchema: { $ref: `#/components/schemas/${content}` } })
}

/** Returns the tags with their groups as parents. A group that has no tag of its own gets one. */
function nestedTags (tags: Tag[], groups: Array<{ name: string, tags: string[] }>): object[] {
  const isGroup = (name: string): boolean => groups.some((group) => group.name === name)
  return groups.flatMap((group) => {
    const children = tags.filter(({ name }) => group.tags.includes(name) && !isGroup(name))
    const own = tags.find(({ name }) => name === group.name)
    const description = own?.description ?? `The operations of ${children.map(({ name }) => name).join(', ')}.`
    const parent = { name: group.name, description, kind: 'nav' }
    return [parent, ...children.map(({ name, description, 'x-displayName': summary = name }) =>
      ({ name, summary, description, parent: group.name, kind: 'nav' }))]
  })
}
