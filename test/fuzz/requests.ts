import fc from 'fast-check'
import { invalidValue, schemaArbitrary, type Resolve, type Schema } from './arbitraries.ts'

/** One request, with references where a record's id goes. */
export interface Shot {
  operation: string
  method: string
  /** With `{name}` where a parameter goes. */
  path: string
  params: Record<string, unknown>
  query: Array<[name: string, value: unknown]>
  headers: Record<string, string>
  /** Goes as JSON, with its references resolved. */
  body?: unknown
  /** Goes as it is, in Latin-1. */
  raw?: string
  /** The key that is sent; the account's own when it is not set. */
  authorization?: string | null
  /** The statuses that refuse it; a valid request has none. */
  refusedWith: number[]
  /** What is wrong with it. */
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

export interface Document {
  paths: Record<string, Record<string, { operationId: string, parameters?: Parameter[], requestBody?: { content: Record<string, { schema: Schema }> } }>>
  components: { schemas: Record<string, Schema> }
}

const JSON_TYPE = { 'content-type': 'application/json' }

/** Small pools, so that keys are used again and tags are met. */
const TAGS = ['*', '"1"', '"2"', '"3"', 'W/"1"', '"1-available"', '"none", "1"', '"nobody"']
const KEYS = ['a', 'b', 'c', '"d"', 'e', 'f', 'g', 'h']

/** Valid and invalid requests for every operation of the document, half and half. */
export function shots (document: Document): fc.Arbitrary<Shot> {
  const resolve: Resolve = ({ $ref, ...schema }) => $ref === undefined ? schema : document.components.schemas[$ref.split('/').at(-1)!]!
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId, parameters = [], requestBody }]): Operation =>
      ({ operationId, method: method.toUpperCase(), path, parameters, body: requestBody?.content['application/json']?.schema })))
  return fc.oneof(...operations.map((operation) => {
    const valid = validShot(operation, resolve)
    // Whoever erases the account begins anew: rarely.
    const weight = operation.operationId === 'deleteAccount' ? 1 : operation.method === 'POST' ? 12 : 8
    return { weight, arbitrary: fc.oneof(valid, valid.chain((shot) => invalidShot(shot, operation, resolve))) }
  }))
}

function validShot ({ operationId, method, path, parameters, body }: Operation, resolve: Resolve): fc.Arbitrary<Shot> {
  const of = (place: string): Parameter[] => parameters.filter((parameter) => parameter.in === place)
  const value = (parameter: Parameter): fc.Arbitrary<unknown> => schemaArbitrary(parameter.schema, resolve, parameter.name, path)
  return fc.record({
    params: fc.record(Object.fromEntries(of('path').map((parameter) => [parameter.name, value(parameter)]))),
    query: fc.record(Object.fromEntries(of('query').map((parameter) => [parameter.name, fc.option(value(parameter), { nil: undefined, freq: 1 })]))),
    headers: fc.record(Object.fromEntries(of('header').map((parameter) => [parameter.name.toLowerCase(), fc.option(header(parameter), { nil: undefined, freq: 1 })]))),
    body: body === undefined ? fc.constant(undefined) : schemaArbitrary(body, resolve, '', path),
    media: fc.constantFrom('application/json', 'application/json; charset=utf-8', ...method === 'PATCH' ? ['application/merge-patch+json'] : []),
    head: fc.nat(9)
  }).map(({ params, query, headers, body: content, media, head }) => ({
    operation: operationId,
    method: method === 'GET' && head === 0 ? 'HEAD' : method,
    path,
    params,
    query: Object.entries(query).flatMap(([name, value]) =>
      value === undefined ? [] : Array.isArray(value) ? value.map((item): [string, unknown] => [name, item]) : [[name, value] as [string, unknown]]),
    headers: { ...defined(headers), ...body === undefined ? {} : { 'content-type': media } },
    ...body === undefined ? {} : { body: content },
    refusedWith: [],
    fault: ''
  }))
}

function header ({ name, schema }: Parameter): fc.Arbitrary<string> {
  if (/^if-(none-)?match$/i.test(name)) return fc.constantFrom(...TAGS)
  if (/^idempotency-key$/i.test(name)) return fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...KEYS) }, { weight: 2, arbitrary: fc.stringMatching(/^[!#-~][!-~]{12,40}$/) })
  if (/^last-event-id$/i.test(name)) return fc.nat(30).map(String)
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum.map(String))
  return fc.stringMatching(new RegExp(schema.pattern ?? '^[a-z]{1,9}$'))
}

/** One thing is wrong with it, and everything else is right. */
function invalidShot (shot: Shot, { method, parameters, body, operationId }: Operation, resolve: Resolve): fc.Arbitrary<Shot> {
  const wrong = (fault: string, change: Partial<Shot>, ...refusedWith: number[]): Shot => ({ ...shot, ...change, fault, refusedWith: refusedWith.length > 0 ? refusedWith : [400] })
  const faults: Array<fc.Arbitrary<Shot>> = [
    fc.constantFrom('x', 'page', 'Limit', 'constructor', '__proto__').filter((name) => !parameters.some((parameter) => parameter.name === name))
      .map((name) => wrong(`query parameter ${name} is unknown`, { query: [...shot.query, [name, '1']] })),
    fc.constant(wrong('method PUT', { method: 'PUT' }, 405)),
    fc.constant(wrong('the address is too long', { query: [['x', 'x'.repeat(9_000)]] }, 414)),
    fc.constant(wrong('the address has a broken escape', { query: shot.query, path: `${shot.path}/%zz` }, 400, 404))
  ]
  if (operationId !== 'createAccount') {
    faults.push(fc.constantFrom(null, 'Basic YWRhOmFkYQ==', 'Bearer nobody', 'Bearer psk_AAAAAAAA_00000000000000000000000000000000000000').map((authorization) =>
      wrong(`authorization ${authorization}`, { authorization }, 401)))
  }
  for (const { name, in: place, schema } of parameters) {
    const inner = resolve(schema)
    if (place === 'path') {
      faults.push(invalidText(inner).filter((text) => text !== '' && !text.includes('/')).map((text) =>
        wrong(`path parameter ${name} is ${text}`, { params: { ...shot.params, [name]: encodeURIComponent(text) } })))
    }
    if (place === 'query') {
      const others = shot.query.filter(([other]) => other !== name)
      faults.push(invalidText(inner.type === 'array' ? resolve(inner.items!) : inner).map((text) => wrong(`query parameter ${name} is ${text}`, { query: [...others, [name, encodeURIComponent(text)]] })))
      if (inner.type !== 'array') faults.push(fc.constant(wrong(`query parameter ${name} twice`, { query: [...others, [name, '1'], [name, '1']] })))
    }
  }
  if (method !== 'GET') {
    const taken = parameters.some(({ name }) => name === 'Idempotency-Key')
    const keys = taken ? ['two words', 'x'.repeat(256), '""', 'tab\there'] : ['abc']
    faults.push(fc.constantFrom(...keys).map((key) => wrong(`Idempotency-Key ${key}`, { headers: { ...shot.headers, 'idempotency-key': key } })))
  }
  if (body !== undefined) faults.push(...invalidBodies(shot, body, resolve, wrong))
  return fc.oneof(...faults)
}

function invalidBodies (shot: Shot, body: Schema, resolve: Resolve, wrong: (fault: string, change: Partial<Shot>, ...refusedWith: number[]) => Shot): Array<fc.Arbitrary<Shot>> {
  const { properties = {}, required = [] } = resolve(body)
  const content = shot.body as Record<string, unknown>
  const { body: _, ...bare } = shot
  const raw = (fault: string, text: string, headers: Record<string, string> = JSON_TYPE): Shot => ({ ...wrong(fault, {}), ...bare, raw: text, headers: { ...shot.headers, ...headers }, fault, refusedWith: [400] })
  const members = Object.entries(properties)
  return [
    fc.constantFrom('', '{', '{}}', 'nothing', '{"a":}', "{'a': 1}", '{"a": 01}', '[1,]', '\xff', '{"a": "\xff"}', '{"a": NaN}').map((text) => raw(`the body is ${JSON.stringify(text)}`, text)),
    fc.constantFrom('null', '[]', '5', '"text"', 'true').map((text) => raw(`the body is ${text}`, text)),
    fc.constantFrom('text/plain', 'application/xml', 'application/x-www-form-urlencoded', 'json', 'application/jsonx').map((type) => wrong(`content type ${type}`, { headers: { ...shot.headers, 'content-type': type } })),
    fc.constant(wrong('content encoding gzip', { headers: { ...shot.headers, 'content-encoding': 'gzip' } })),
    fc.constantFrom('junk', 'id', 'version', 'accountId', 'constructor', 'toString').filter((name) => !(name in properties)).map((name) => wrong(`member ${name} is unknown`, { body: { ...content, [name]: 1 } })),
    fc.constant(raw('member __proto__', '{"__proto__": {"a": 1}}')),
    fc.constant({ ...raw('the body is too large', `{"junk": "${'x'.repeat(140_000)}"}`), refusedWith: [413] }),
    ...required.map((name) => fc.constant(wrong(`${name} is missing`, { body: Object.fromEntries(Object.entries(content).filter(([other]) => other !== name)) }))),
    ...members.map(([name, schema]) => invalidValue(schema, resolve).map((value) => wrong(`${name} is ${JSON.stringify(value)?.slice(0, 60)}`, { body: { ...content, [name]: value } })))
  ]
}

/** Text that no parameter of this schema takes. */
function invalidText (schema: Schema): fc.Arbitrary<string> {
  if (schema.enum !== undefined) return fc.constantFrom('', 'nothing', 'AVAILABLE', ' id', 'null')
  if (schema.type === 'boolean') return fc.constantFrom('', 'yes', '1', 'TRUE', 'null')
  if (schema.type === 'integer') {
    const texts = ['', 'x', '1.0', '1.5', '+1', '-1', '01', '1e3', '0x1', ' 1', 'Infinity', 'NaN', 'null', '9223372036854775808', '99999999999999999999']
    if ((schema.minimum ?? 0) > 0) texts.push('0')
    if (schema.maximum !== undefined) texts.push(String(schema.maximum + 1))
    return fc.constantFrom(...texts)
  }
  if (schema.pattern === undefined) return fc.constant('\0')
  const pattern = new RegExp(schema.pattern)
  return fc.constantFrom('', 'UPPER', 'a b', '-1', 'ä', 'x'.repeat(300), '"', '\0').filter((text) => !pattern.test(text))
}

function defined (headers: Record<string, string | undefined>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== undefined))
}
