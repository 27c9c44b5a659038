import { ENTITY_TAGS_PATTERN } from '../http/conditional-requests.ts'
import type { Header, Parameter, Reference } from './document.ts'

const text = (description: string, example: string): Header =>
  ({ description, required: true, schema: { type: 'string' }, example })

/** All header fields of responses. */
const FIELDS = {
  'Request-Id': text('Identifies the request in the logs of the service. A client can send its own.', 'f3Zk1xQh0aVb-7'),
  ETag: text(
    'Identifies this state of the record or list. Send it in `If-None-Match` to read only what has changed, or in ' +
      '`If-Match` to write only over what you have read.',
    '"3"'
  ),
  Location: text('Address of the new record.', '/pets/7'),
  Link: text(
    'The pages of the list (RFC 8288): `rel="first"`, and `rel="next"` if more records follow.',
    '</pets?cursor=k>; rel="next", </pets>; rel="first"'
  ),
  Successor: text(
    'The operation to use instead (RFC 5829): `rel="successor-version"`.', '</pets?id=7>; rel="successor-version"'
  ),
  Deprecation: text('Time at which the operation was deprecated (RFC 9745).', '@1764892800'),
  Sunset: text('Time at which the operation ends (RFC 8594).', 'Thu, 05 Dec 2030 00:00:00 GMT'),
  'Accept-Patch': text(
    'The media types of a patch (RFC 5789), if the request has another one.',
    'application/json, application/merge-patch+json'
  ),
  'WWW-Authenticate': text('The authentication scheme and the error (RFC 6750).', 'Bearer realm="petstore"'),
  'Retry-After': {
    description: 'Seconds to wait before you try again.', required: true, schema: { type: 'integer' }, example: 1
  },
  'Retry-Time': text(
    'Seconds to wait before you try again; a date, if your own limits say so (RFC 9110 section 10.2.3).', '1'
  ),
  RateLimit: text(
    'Where the service has a limit: `r` requests are left, and all are available again in `t` seconds.',
    '"default";r=599;t=12'
  ),
  'RateLimit-Policy': text('Where the service has a limit: `q` requests in `w` seconds.', '"default";q=600;w=60'),
  'Event-Id': text('Number of the newest event of the account, 0 before the first event.', '42'),
  'X-Accel-Buffering': text('Asks proxies to forward a stream without buffering.', 'no'),
  'Idempotency-Replayed': {
    ...text('`true` if this is the response to an earlier request with the same `Idempotency-Key`.', 'true'),
    required: false
  }
} satisfies Record<string, Header>

export type HeaderName = keyof typeof FIELDS

const OPTIONAL = 'Optional-'

/** The components of header fields: each field, and a field that most responses must have once more as optional. */
export const HEADERS: Record<string, Header> = {
  ...FIELDS,
  ...Object.fromEntries(Object.entries(FIELDS).filter(([, { required }]) => required)
    .map(([name, header]) => [OPTIONAL + name, { ...header, required: false }]))
}

/** Returns a reference to the component of a field. The component says whether all such responses have the field. */
export function always (name: HeaderName): Reference {
  return { $ref: `#/components/headers/${name}` }
}

/** Returns a field as optional: only some of these responses have it. */
export function sometimes (name: HeaderName): Reference {
  return always(FIELDS[name].required ? OPTIONAL + name as HeaderName : name)
}

/** Returns the header fields of a response as optional, except the one that every response has. */
export function optional (headers: Record<string, Reference>): Record<string, Reference> {
  return Object.fromEntries(Object.entries(headers).map(([name, header]) => {
    const component = header.$ref.split('/').at(-1)!
    return [name, name === 'Request-Id' || !(component in FIELDS) ? header : sometimes(component as HeaderName)]
  }))
}

const field = (name: string, description: string, example: string, schema = {}): Parameter =>
  ({ name, in: 'header', description, schema: { type: 'string', ...schema }, example })

const ENTITY_TAGS = { pattern: ENTITY_TAGS_PATTERN }

export const IF_MATCH = field(
  'If-Match', 'Write only if the record still has one of these ETags; `*` matches any ETag.', '*', ENTITY_TAGS
)

export const IF_NONE_MATCH = field(
  'If-None-Match', 'Return the content only if its ETag is none of these; otherwise return 304.', '"0"', ENTITY_TAGS
)

export const WRITE_IF_NONE_MATCH = field(
  'If-None-Match',
  'Write only if the record has none of these ETags; with `*`, only if there is no record.',
  '"0"',
  ENTITY_TAGS
)

export const LAST_EVENT_ID = field(
  'Last-Event-ID',
  'The number of the last event that the client received. It takes precedence over `after`.',
  '0',
  { pattern: '^(0|[1-9][0-9]{0,18})?$' }
)

/** Returns the parameter with an example of its own: a key names one request of an account. */
export function idempotencyKey (operationId: string): Parameter {
  return field(
    'Idempotency-Key',
    'A key of your choice. Within 24 hours, a repeated request gets the first response.',
    `${operationId}-1`,
    // Bare, or in quotes, which are no part of the key.
    { pattern: '^("[!-~]{1,255}"|[!#-~][!-~]{0,254}|"([!-~]{0,253}[!#-~])?)$' }
  )
}
