import type { Schema } from './document.ts'
import { toJsonSchema } from './json-schema.ts'
import type { SharedDocument } from './share-components.ts'
import { SIGNATURE_HEADERS, WebhookTestEventSchema } from './webhook-requests.ts'

const RECORDED = 'RecordedRequest'

const RECORDED_MESSAGE = {
  name: 'request', contentType: 'application/json', payload: { $ref: `#/components/schemas/${RECORDED}` }
}

/**
 * Returns an AsyncAPI 3 document of the messages that the service sends: the event stream and the webhooks. It is made
 * of the schemas of the OpenAPI document.
 */
export function toAsyncapi ({ info, servers, components }: SharedDocument): object {
  const { protocol, host, pathname } = new URL(servers[0]!.url)
  const schemas: Record<string, Schema> = { ...components.schemas, WebhookTestEvent: WebhookTestEventSchema }
  const events = schemas['EventType']!.enum!.map((type) => `${pascalCase(String(type))}Event`)
  const delivered = [...events, 'WebhookTestEvent']
  // The journal exists where the lab does.
  const hasJournal = RECORDED in schemas
  return {
    asyncapi: '3.0.0',
    info: {
      title: `${info.title} events`,
      version: info.version,
      description: 'What the service sends by itself: a stream of events, and requests to webhooks.',
      license: { name: 'MIT', url: 'https://opensource.org/license/mit' }
    },
    defaultContentType: 'application/json',
    servers: {
      service: {
        host,
        protocol: protocol.slice(0, -1),
        ...pathname === '/' ? {} : { pathname },
        security: [{ $ref: '#/components/securitySchemes/bearerAuth' }]
      }
    },
    channels: {
      events: {
        address: '/events',
        description: 'The event stream of an account, with `Accept: text/event-stream`. Resume with `Last-Event-ID`.',
        servers: [{ $ref: '#/servers/service' }],
        messages: messagesOf(events)
      },
      ...hasJournal
        ? {
            requests: {
              address: '/lab/requests',
              description: 'The recorded requests of an account, with `Accept: text/event-stream`. Resume with ' +
                '`Last-Event-ID`.',
              servers: [{ $ref: '#/servers/service' }],
              messages: messagesOf([RECORDED])
            }
          }
        : {},
      webhook: {
        description: 'The `url` of a webhook. Each request is signed as the Standard Webhooks specification says.',
        messages: messagesOf(delivered)
      }
    },
    operations: {
      streamEvents: {
        action: 'send',
        channel: { $ref: '#/channels/events' },
        summary: 'Send new events to the clients that follow the stream.'
      },
      ...hasJournal
        ? {
            streamRequests: {
              action: 'send',
              channel: { $ref: '#/channels/requests' },
              summary: 'Send recorded requests to the clients that follow the journal.'
            }
          }
        : {},
      deliverEvents: {
        action: 'send',
        channel: { $ref: '#/channels/webhook' },
        summary: 'Send an event to a webhook until the receiver accepts it, for about a day.',
        bindings: { http: { method: 'POST', bindingVersion: '0.3.0' } }
      }
    },
    components: {
      messages: {
        ...Object.fromEntries(delivered.map((name) => [name, messageOf(name, schemas[name]!)])),
        ...hasJournal ? { [RECORDED]: RECORDED_MESSAGE } : {}
      },
      schemas: Object.fromEntries(reachableFrom(schemas, [...delivered, ...hasJournal ? [RECORDED] : []])
        .map((name) => [name, payload(schemas[name]!)])),
      securitySchemes: { bearerAuth: { type: 'http', scheme: 'bearer' } }
    }
  }
}

function messagesOf (names: string[]): Record<string, object> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/messages/${name}` }]))
}

function messageOf (name: string, { properties }: Schema): object {
  const headers: Record<string, object> = {}
  for (const { name, description, schema, example } of Object.values(SIGNATURE_HEADERS)) {
    headers[name] = { ...schema, description, examples: [example] }
  }
  return {
    name: String(properties!['type']!.enum![0]),
    contentType: 'application/json',
    // Webhooks alone have header fields; the fields of the stream are those of EventStreamMessage.
    headers: { type: 'object', properties: headers },
    payload: { $ref: `#/components/schemas/${name}` }
  }
}

/** Returns the names of schemas and of all that they refer to. */
function reachableFrom (schemas: Record<string, Schema>, names: string[]): string[] {
  const reached = new Set<string>()
  const queue = [...names]
  for (let name = queue.pop(); name !== undefined; name = queue.pop()) {
    if (reached.has(name)) continue
    reached.add(name)
    for (const [, other] of JSON.stringify(schemas[name]).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      queue.push(other!)
    }
  }
  return Object.keys(schemas).filter((name) => reached.has(name))
}

/** AsyncAPI schemas extend JSON Schema draft 7, which has the keywords that are left after the conversion. */
function payload (schema: Schema): object {
  // The constants of `type` tell the members of a union apart; AsyncAPI has another form of discriminator.
  const { discriminator: _, ...converted } = toJsonSchema(schema) as Schema & { discriminator?: unknown }
  return converted
}

function pascalCase (type: string): string {
  return type.split('.').map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
}
