import fc from 'fast-check'
import { READING_POSTS } from '../support/operations.ts'
import { invalidValue, schemaArbitrary, type Resolve, type Schema } from './arbitraries.ts'

/** One request, with references in place of the ids of records. */
export interface FuzzRequest {
  operation: string
  method: string
  /** The path, with `{name}` in place of a parameter. */
  path: string
  params: Record<string, unknown>
  query: Array<[name: string, value: unknown]>
  headers: Record<string, string>
  /** Sent as JSON, with its references resolved. */
  body?: unknown
  /** Sent unchanged, in Latin-1. */
  raw?: string
  /** The field value to send. By default it carries the account's key; null sends none. */
  authorization?: string | null
  /** The statuses that may refuse it. A valid request has none. */
  expectedStatuses: number[]
  /** The reason why it is invalid. */
  fault: string
}

interface Parameter { name: string, in: string, required?: boolean, schema: Schema }

export interface Operation {
  operationId: string
  method: string
  path: string
  parameters: Parameter[]
  body: Schema | undefined
}

interface DocumentedOperation {
  operationId: string
  parameters?: Parameter[]
  requestBody?: { content: Record<string, { schema: Schema }> }
}

export interface Document {
  paths: Record<string, Record<string, DocumentedOperation>>
  components: { schemas: Record<string, Schema> }
}

const JSON_TYPE = { 'content-type': 'application/json' }

/** The pools are small, so that requests reuse keys and tags match. */
const ETAGS = ['*', '"1"', '"2"', '"3"', 'W/"1"', '"1-available"', '"none", "1"', '"unknown"']
const IDEMPOTENCY_KEYS = ['a', 'b', 'c', '"d"', 'e', 'f', 'g', 'h']

/** A well-formed key that belongs to no account. */
const UNKNOWN_KEY = 'Bearer psk_AAAAAAAA_00000000000000000000000000000000000000'

const INVALID_JSON = [
  '', '{', '{}}', 'nothing', '{"a":}', "{'a': 1}", '{"a": 01}', '[1,]', '\xff', '{"a": "\xff"}', '{"a": NaN}'
]

const OTHER_CONTENT_TYPES = [
  'text/plain', 'application/xml', 'application/x-www-form-urlencoded', 'json', 'application/jsonx'
]

/** Generates requests for every operation of the document: one half is valid, the other invalid. */
export function requestArbitrary (document: Document): fc.Arbitrary<FuzzRequest> {
  const { schemas } = document.components
  const resolve: Resolve = ({ $ref, ...schema }) => $ref === undefined ? schema : schemas[$ref.split('/').at(-1)!]!
  return fc.oneof(...operationsOf(document).map((operation) => {
    const valid = validRequest(operation, resolve)
    // A deleted account makes the sequence start again, so that it is rare.
    const weight = operation.operationId === 'deleteAccount' ? 1 : operation.method === 'POST' ? 12 : 8
    return { weight, arbitrary: fc.oneof(valid, valid.chain((request) => invalidRequest(request, operation, resolve))) }
  }))
}

function operationsOf ({ paths }: Document): Operation[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    // Files of stores have tests of their own.
    Object.entries(methods).filter(([, { requestBody }]) => requestBody?.content['application/x-ndjson'] === undefined)
      .map(([method, { operationId, parameters = [], requestBody }]) => {
        const body = requestBody?.content['application/json']?.schema
        return { operationId, method: method.toUpperCase(), path, parameters, body }
      }))
}

function validRequest (operation: Operation, resolve: Resolve): fc.Arbitrary<FuzzRequest> {
  const { operationId, method, path, parameters, body } = operation
  const inPlace = (place: string): Parameter[] => parameters.filter((parameter) => parameter.in === place)
  const value = ({ schema, name }: Parameter): fc.Arbitrary<unknown> => schemaArbitrary(schema, resolve, name, path)
  const optional = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
    fc.option(arbitrary, { nil: undefined, freq: 1 })
  const mediaTypes = ['application/json', 'application/json; charset=utf-8']
  if (method === 'PATCH') mediaTypes.push('application/merge-patch+json')
  return fc.record({
    params: fc.record(Object.fromEntries(inPlace('path').map((parameter) => [parameter.name, value(parameter)]))),
    query: fc.record(Object.fromEntries(inPlace('query').map((parameter) =>
      [parameter.name, optional(value(parameter))]))),
    headers: fc.record(Object.fromEntries(inPlace('header').map((parameter) =>
      [parameter.name.toLowerCase(), optional(header(parameter))]))),
    body: body === undefined ? fc.constant(undefined) : schemaArbitrary(body, resolve, '', path),
    media: fc.constantFrom(...mediaTypes),
    head: fc.nat(9)
  }).map(({ params, query, headers, body: content, media, head }) => ({
    operation: operationId,
    method: method === 'GET' && head === 0 ? 'HEAD' : method,
    path,
    params,
    query: Object.entries(query).flatMap(([name, value]) => {
      if (value === undefined) return []
      return (Array.isArray(value) ? value : [value]).map((item): [string, unknown] => [name, item])
    }),
    headers: { ...defined(headers), ...body === undefined ? {} : { 'content-type': media } },
    ...body === undefined ? {} : { body: content },
    expectedStatuses: [],
    fault: ''
  }))
}

function header ({ name, schema }: Parameter): fc.Arbitrary<string> {
  if (/^if-(none-)?match$/i.test(name)) return fc.constantFrom(...ETAGS)
  if (/^idempotency-key$/i.test(name)) {
    return fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom(...IDEMPOTENCY_KEYS) },
      { weight: 2, arbitrary: fc.stringMatching(/^[!#-~][!-~]{12,40}$/) }
    )
  }
  if (/^last-event-id$/i.test(name)) return fc.nat(30).map(String)
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum.map(String))
  return fc.stringMatching(new RegExp(schema.pattern ?? '^[a-z]{1,9}$'))
}

/** Changes a request so that the service must refuse it. */
type MakeInvalid = (fault: string, change: Partial<FuzzRequest>, ...expectedStatuses: number[]) => FuzzRequest

/** Makes exactly one part of a valid request invalid. */
function invalidRequest (
  request: FuzzRequest, operation: Operation, resolve: Resolve
): fc.Arbitrary<FuzzRequest> {
  const invalid: MakeInvalid = (fault, change, ...expectedStatuses) =>
    ({ ...request, ...change, fault, expectedStatuses: expectedStatuses.length > 0 ? expectedStatuses : [400] })
  const faults = [
    ...invalidTargets(request, operation, invalid),
    ...operation.parameters.flatMap((parameter) => invalidParameter(request, parameter, resolve, invalid))
  ]
  if (operation.operationId !== 'createAccount') {
    faults.push(fc.constantFrom(null, 'Basic YWRhOmFkYQ==', 'Bearer unknown', UNKNOWN_KEY)
      .map((authorization) => invalid(`authorization ${authorization}`, { authorization }, 401)))
  }
  // A request that can be repeated without a key ignores one.
  if (!['GET', 'PUT'].includes(operation.method) && !READING_POSTS.includes(operation.operationId)) {
    const accepted = operation.parameters.some(({ name }) => name === 'Idempotency-Key')
    const keys = accepted ? ['two words', 'x'.repeat(256), '""', 'tab\there'] : ['abc']
    faults.push(fc.constantFrom(...keys).map((key) =>
      invalid(`Idempotency-Key ${key}`, { headers: { ...request.headers, 'idempotency-key': key } })))
  }
  if (operation.body !== undefined) faults.push(...invalidBodies(request, operation.body, resolve, invalid))
  return fc.oneof(...faults)
}

function invalidTargets (
  { query, path }: FuzzRequest, { parameters }: Operation, invalid: MakeInvalid
): Array<fc.Arbitrary<FuzzRequest>> {
  return [
    fc.constantFrom('x', 'page', 'Limit', 'constructor', '__proto__')
      .filter((name) => !parameters.some((parameter) => parameter.name === name))
      .map((name) => invalid(`query parameter ${name} is unknown`, { query: [...query, [name, '1']] })),
    fc.constant(invalid('method PROPFIND', { method: 'PROPFIND' }, 405)),
    fc.constant(invalid('the address is too long', { query: [['x', 'x'.repeat(9_000)]] }, 414)),
    fc.constant(invalid('the address has a broken escape', { query, path: `${path}/%zz` }, 400, 404))
  ]
}

function invalidParameter (
  { params, query }: FuzzRequest, { name, in: place, schema }: Parameter, resolve: Resolve, invalid: MakeInvalid
): Array<fc.Arbitrary<FuzzRequest>> {
  const inner = resolve(schema)
  if (place === 'path') {
    const texts = invalidText(inner).filter((text) => text !== '' && !text.includes('/'))
    return [texts.map((text) =>
      invalid(`path parameter ${name} is ${text}`, { params: { ...params, [name]: encodeURIComponent(text) } }))]
  }
  if (place !== 'query') return []
  const others = query.filter(([other]) => other !== name)
  const texts = invalidText(inner.type === 'array' ? resolve(inner.items!) : inner)
  const faults = [texts.map((text) =>
    invalid(`query parameter ${name} is ${text}`, { query: [...others, [name, encodeURIComponent(text)]] }))]
  if (inner.type !== 'array') {
    faults.push(fc.constant(invalid(`query parameter ${name} twice`, { query: [...others, [name, '1'], [name, '1']] })))
  }
  return faults
}

function invalidBodies (
  request: FuzzRequest, body: Schema, resolve: Resolve, invalid: MakeInvalid
): Array<fc.Arbitrary<FuzzRequest>> {
  const { properties = {}, required = [] } = resolve(body)
  const content = request.body as Record<string, unknown>
  const { body: _, ...bare } = request
  const raw = (fault: string, text: string): FuzzRequest =>
    ({ ...bare, raw: text, headers: { ...request.headers, ...JSON_TYPE }, fault, expectedStatuses: [400] })
  const withHeader = (fault: string, headers: Record<string, string>): FuzzRequest =>
    invalid(fault, { headers: { ...request.headers, ...headers } })
  const without = (name: string): Record<string, unknown> =>
    Object.fromEntries(Object.entries(content).filter(([other]) => other !== name))
  return [
    fc.constantFrom(...INVALID_JSON).map((text) => raw(`the body is ${JSON.stringify(text)}`, text)),
    fc.constantFrom('null', '[]', '5', '"text"', 'true').map((text) => raw(`the body is ${text}`, text)),
    fc.constantFrom(...OTHER_CONTENT_TYPES).map((type) => withHeader(`content type ${type}`, { 'content-type': type })),
    fc.constant(withHeader('content encoding gzip', { 'content-encoding': 'gzip' })),
    fc.constantFrom('junk', 'id', 'version', 'accountId', 'constructor', 'toString')
      .filter((name) => !(name in properties))
      .map((name) => invalid(`member ${name} is unknown`, { body: { ...content, [name]: 1 } })),
    fc.constant(raw('member __proto__', '{"__proto__": {"a": 1}}')),
    fc.constant({ ...raw('the body is too large', `{"junk": "${'x'.repeat(140_000)}"}`), expectedStatuses: [413] }),
    ...required.map((name) => fc.constant(invalid(`${name} is missing`, { body: without(name) }))),
    ...Object.entries(properties).map(([name, schema]) => invalidValue(schema, resolve).map((value) =>
      invalid(`${name} is ${JSON.stringify(value)?.slice(0, 60)}`, { body: { ...content, [name]: value } })))
  ]
}

/** Generates texts that a parameter of this schema does not accept. */
function invalidText (schema: Schema): fc.Arbitrary<string> {
  if (schema.enum !== undefined) return fc.constantFrom('', 'nothing', 'AVAILABLE', ' id', 'null')
  if (schema.type === 'boolean') return fc.constantFrom('', 'yes', '1', 'TRUE', 'null')
  if (schema.type === 'integer') {
    const texts = [
      '', 'x', '1.0', '1.5', '+1', '-1', '01', '1e3', '0x1', ' 1', 'Infinity', 'NaN', 'null', '9223372036854775808',
      '99999999999999999999'
    ]
    if ((schema.minimum ?? 0) > 0) texts.push('0')
    if (schema.maximum !== undefined) texts.push(String(schema.maximum + 1))
    return fc.constantFrom(...texts)
  }
  if (schema.pattern === undefined) return fc.constant('\0')
  const pattern = new RegExp(schema.pattern)
  return fc.constantFrom('', 'UPPER', 'a b', '-1', 'ä', 'x'.repeat(300), '"', '\0')
    .filter((text) => !pattern.test(text))
}

function defined (headers: Record<string, string | undefined>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers)
    .filter((entry): entry is [string, string] => entry[1] !== undefined))
}
