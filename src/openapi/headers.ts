import type { Header, Parameter, Reference } from './document.ts'

const text = (description: string, example: string): Header =>
  ({ description, required: true, schema: { type: 'string' }, example })

/** Every header field that an answer may carry, as a component. */
export const HEADERS = {
  'Request-Id': text('Names the request in the service\'s logs. A client\'s own is kept.', 'f3Zk1xQh0aVb-7'),
  ETag: text('Names this state of the record or list. Send it in `If-None-Match` to hear only of changes, or in `If-Match` to write only over what you read.', '"3"'),
  Location: text('Where the new record is.', '/pets/7'),
  Link: text('The pages of the list (RFC 8288): `rel="first"`, and `rel="next"` while there is more.', '</pets?cursor=k>; rel="next", </pets>; rel="first"'),
  Successor: text('What to call instead (RFC 5829): `rel="successor-version"`.', '</pets?id=7>; rel="successor-version"'),
  Deprecation: text('Since when the operation is deprecated (RFC 9745).', '@1764892800'),
  Sunset: text('When the operation ends (RFC 8594).', 'Thu, 05 Dec 2030 00:00:00 GMT'),
  'WWW-Authenticate': text('How to authenticate, and what was wrong (RFC 6750).', 'Bearer realm="petstore"'),
  'Retry-After': { description: 'Seconds to wait before you try again.', required: true, schema: { type: 'integer' }, example: 1 },
  RateLimit: { ...text('Where the service has a limit: what is left of it, and in how many seconds it is whole again.', '"default";r=599;t=12'), required: false },
  'RateLimit-Policy': { ...text('Where the service has a limit: so many requests in so many seconds.', '"default";q=600;w=60'), required: false },
  'Event-Id': text('Number of the newest event of the account, 0 before the first.', '42'),
  'X-Accel-Buffering': text('Asks proxies to pass a stream on at once.', 'no'),
  'Idempotency-Replayed': text('`true` when this is the answer of an earlier request with the same `Idempotency-Key`.', 'true')
} satisfies Record<string, Header>

export type HeaderName = keyof typeof HEADERS

/** A field that every such answer carries, or as its component says. */
export function always (name: HeaderName): Reference {
  return { $ref: `#/components/headers/${name}` }
}

/** As `always`, for a field whose component leaves it open. */
export function certainly (name: HeaderName): Header {
  return { ...HEADERS[name], required: true }
}

/** On every answer of an operation whose caller may be limited. */
export const LIMITS = { RateLimit: always('RateLimit'), 'RateLimit-Policy': always('RateLimit-Policy') }

/** A field that such an answer carries at times. */
export function sometimes (name: HeaderName): Header {
  return { ...HEADERS[name], required: false }
}

const field = (name: string, description: string, example: string, schema = {}): Parameter =>
  ({ name, in: 'header', required: false, description, schema: { type: 'string', ...schema }, example })

export const IF_MATCH = field('If-Match', 'Write only if the record still has one of these ETags; `*` for any.', '"3"')

export const IF_NONE_MATCH = field('If-None-Match', 'Answer only if the ETag is none of these; else 304.', '"3"')

export const WRITE_IF_NONE_MATCH = field('If-None-Match', 'Write only if the record has none of these ETags; `*` for no record at all.', '"2"')

export const LAST_EVENT_ID = field('Last-Event-ID', 'Where a stream goes on: the number of the last event that was seen.', '41', { pattern: '^(0|[1-9][0-9]{0,18})?$' })

export const IDEMPOTENCY_KEY = field(
  'Idempotency-Key',
  'A name of your own for this request: 1 to 255 visible ASCII characters, in quotes or bare. Sent again within 24 hours, the request is answered as before and does nothing.',
  '8e03978e-40d5-43dd-bc93-6894a57f9324',
  // Bare, or in quotes that do not count.
  { pattern: '^("[!-~]{1,255}"|[!#-~][!-~]{0,254}|"([!-~]{0,253}[!#-~])?)$' }
)
