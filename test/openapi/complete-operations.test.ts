// Only on SQLite: checks the document and its viewer.

import t from 'tap'
import type { Answer, Example, Operation } from '../../src/openapi/document.ts'
import { errorCodes } from '../support/contract.ts'
import { loadFixtures, mergeTables } from '../support/fixture.ts'
import { READING_POSTS } from '../support/operations.ts'
import { servedDocument } from './document.ts'

const fixtures = await loadFixtures()

/** operationId, tag, success, and the codes that are the operation's own. */
const OPERATIONS = mergeTables(fixtures.map(({ operations }) => operations))

const SECRET = fixtures.flatMap(({ secretWrites = {} }) => Object.keys(secretWrites))

/** The codes that no resource has for itself. Together with those of the fixtures, the list is closed. */
const CODES: Record<number, string[]> = {
  400: ['invalid_json', 'invalid_content_type', 'validation_failed', 'bad_request'],
  401: ['unauthorized'],
  403: ['read_only_key'],
  404: ['route_not_found'],
  405: ['method_not_allowed'],
  408: ['request_timeout'],
  409: ['idempotency_key_in_use', 'storage_limit_reached'],
  412: ['precondition_failed'],
  413: ['payload_too_large'],
  414: ['uri_too_long'],
  422: ['idempotency_key_reused'],
  429: ['rate_limited'],
  431: ['headers_too_large'],
  500: ['internal_error'],
  501: ['not_implemented'],
  503: ['overloaded', 'database_unavailable', 'shutting_down']
}

t.test('the OpenAPI document', async (t) => {
  const { document, operations } = await servedDocument(t)
  const codesOf = ({ responses }: Operation): string[] =>
    Object.entries(responses)
      .filter(([status]) => Number(status) >= 400)
      .flatMap(([, { content }]) => Object.keys(content?.['application/json']?.examples ?? {}))

  await t.test('has every operation of the contract, each with what a reader needs', async (t) => {
    const tags = new Set(operations.flatMap(({ operation }) => operation.tags))
    const expected = Object.entries(OPERATIONS).filter(([, [, tag]]) => tags.has(tag))
    t.same(
      Object.fromEntries(
        operations.map(({ path, method, operation }) => [`${method} ${path}`, operation.operationId])
      ),
      Object.fromEntries(expected.map(([name, [id]]) => [name, id]))
    )
    for (const { path, method, operation } of operations) {
      const [id, tag, status] = OPERATIONS[`${method} ${path}`]!
      t.same(operation.tags, [tag], `tag of ${id}`)
      t.match(operation.summary, /^[A-Z].{5,60}[^.]$/, `summary of ${id}`)
      t.match(operation.description, /^[A-Z].{10,}\.$/s, `description of ${id}`)
      t.same(
        Object.keys(operation.responses).filter((code) => code.startsWith('2')),
        [String(status)],
        `success of ${id}`
      )
      for (const answer of Object.values(operation.responses)) { t.match(answer.description, /^(?!Default Response).+\.$/s, `descriptions of ${id}`) }
      t.same(operation.security, id === 'createAccount' ? [] : undefined, `security of ${id}`)
    }
    t.same(document.security, [{ bearerAuth: [] }])
  })

  await t.test('documents the errors of each operation, and of no other', async (t) => {
    const statuses = Object.fromEntries([
      ...Object.entries(CODES).flatMap(([status, codes]) => codes.map((code) => [code, [Number(status)]] as const)),
      ...Object.entries(mergeTables(fixtures.map(({ errors }) => errors))).map(
        ([code, { status }]) => [code, [status].flat()] as const
      )
    ])
    for (const { code, status } of errorCodes()) t.ok(statuses[code]?.includes(status), `${status} ${code} is on the list`)

    const injected = errorCodes().map(({ code }) => code).filter((code) => code === 'injected_fault')
    for (const { path, method, operation } of operations) {
      const [id, , , ...own] = OPERATIONS[`${method} ${path}`]!
      const write = method !== 'get' && !READING_POSTS.includes(id)
      const keyed = write && method !== 'put' && !SECRET.includes(id)
      const expected = [
        'validation_failed',
        'bad_request',
        'precondition_failed',
        'request_timeout',
        'uri_too_long',
        'headers_too_large',
        'rate_limited',
        'internal_error',
        'overloaded',
        'database_unavailable',
        'shutting_down',
        ...(id === 'createAccount' ? [] : ['unauthorized', ...injected, ...(write ? ['read_only_key'] : [])]),
        ...(operation.requestBody === undefined ? [] : ['invalid_json', 'invalid_content_type', 'payload_too_large']),
        ...(keyed ? ['idempotency_key_in_use', 'idempotency_key_reused'] : []),
        ...(write && ['post', 'patch'].includes(method) && id !== 'createAccount' ? ['storage_limit_reached'] : []),
        ...own
      ]
      t.same(codesOf(operation).sort(), expected.sort(), id)
      for (const [status, { content }] of Object.entries(operation.responses)) {
        const { schema, examples = {} } = content?.['application/json'] ?? {}
        if (Number(status) < 400) continue
        t.equal(schema?.$ref, '#/components/schemas/Error')
        for (const [code, { value }] of Object.entries(examples as Record<string, Example>)) {
          t.match(value, { code, status: Number(status), message: /^[A-Z"a-z].*\.$/ }, `${id} ${code}`)
          t.ok(statuses[code]?.includes(Number(status)))
          t.notMatch(JSON.stringify(value), '%s')
        }
      }
    }
  })

  await t.test('declares the header fields of requests and answers', async (t) => {
    const carried = ({ headers = {} }: Answer): string[] => Object.keys(headers)
    for (const { method, operation } of operations) {
      const { operationId: id, parameters = [], requestBody, responses } = operation
      const fields = parameters.filter((parameter) => parameter.in === 'header').map(({ name }) => name)
      const keyed = !['get', 'put'].includes(method) && !READING_POSTS.includes(id) && !SECRET.includes(id)
      const conditional = ['put', 'patch', 'delete'].includes(method)
      t.equal(fields.includes('Idempotency-Key'), keyed, `Idempotency-Key of ${id}`)
      t.equal(fields.includes('If-Match'), conditional, `If-Match of ${id}`)
      t.equal(fields.includes('If-None-Match'), method === 'get' || conditional, `If-None-Match of ${id}`)
      if (requestBody !== undefined) {
        const media = id === 'importSnapshot' ? 'application/x-ndjson' : 'application/json'
        t.same(Object.keys(requestBody.content), [media])
      }
      for (const [status, answer] of Object.entries(responses)) {
        t.ok(carried(answer).includes('Request-Id'), `Request-Id of ${id} ${status}`)
        t.equal(
          carried(answer).includes('ETag'),
          status === '304' || (['200', '201'].includes(status) && answer.content !== undefined),
          `ETag of ${id} ${status}`
        )
        if (status === '401') t.ok(carried(answer).includes('WWW-Authenticate'))
        if (status === '429') {
          t.same(
            ['RateLimit', 'RateLimit-Policy', 'Retry-After'].filter((name) => !carried(answer).includes(name)),
            []
          )
        }
        t.equal(carried(answer).includes('RateLimit'), status === '429', `RateLimit of ${id} ${status}, without a limit`)
        if (status === '503') t.ok(carried(answer).includes('Retry-After'))
        // The faults of a scenario have an address each.
        if (status === '201' && id !== 'createScenario') t.ok(carried(answer).includes('Location'), `Location of ${id}`)
        if (id === 'getPet' && ['200', '304', '404', '410'].includes(status)) {
          t.same(['Deprecation', 'Sunset', 'Link'].filter((name) => !carried(answer).includes(name)), [])
        }
        if (id === 'getPet' && answer.headers!['Link'] !== undefined) {
          t.match(answer.headers!['Link'], { $ref: /Successor$/ }, `Link of ${id} ${status}`)
        }
      }
      t.equal(responses['304'] !== undefined, method === 'get')
      t.equal(responses['304']?.content, undefined)
    }
  })

  await t.test('marks what is deprecated, unstable or not to be tried', async (t) => {
    const byId = (id: string) => operations.find(({ operation }) => operation.operationId === id)!.operation
    t.match(byId('listOrders'), {
      'x-hideTryItPanel': true,
      'x-hideReplay': true,
      'x-zudoku-playground-enabled': false,
      'x-explorer-enabled': false,
      'x-readme': { 'explorer-enabled': false },
      'x-mint': { metadata: { playground: 'none' } },
      'x-fern-explorer': false
    })
    t.match(byId('getPet'), { deprecated: true, 'x-deprecated-sunset': '2030-12-05', 'x-sunset': '2030-12-05' })
    for (const { operation } of operations) {
      const { operationId: id } = operation
      const stability =
        id === 'cancelOrder'
          ? 'beta'
          : ['updateInventory', 'listEvents'].includes(id) || ['lab', 'webhooks'].includes(operation.tags[0]!)
              ? 'experimental'
              : undefined
      t.equal(operation['x-stability'], stability, `x-stability of ${id}`)
      t.same(operation['x-badges'], stability === undefined ? undefined : [{ name: stability, label: stability }])
      t.equal(operation['x-hideTryItPanel'], id === 'listOrders' ? true : undefined)
      t.equal(operation.deprecated, id === 'getPet' ? true : undefined)
    }
  })

  await t.test('links what is created to what can be done with its id', async (t) => {
    const linked = (id: string) =>
      Object.keys(
        operations.find(({ operation }) => operation.operationId === id)!.operation.responses['201']!.links ?? {}
      ).sort()
    t.same(linked('createPet'), [
      'deletePet',
      'getInventoryItem',
      'getPet',
      'listInventory',
      'listOrders',
      'listPets',
      'updateInventory',
      'updatePet'
    ])
    t.same(linked('createCategory'), ['deleteCategory', 'getCategory', 'listPets', 'updateCategory'])
    t.same(linked('placeOrder'), ['cancelOrder', 'getOrder', 'updateOrder'])
    t.same(linked('createMessage'), ['getMessage'])
    t.same(linked('createApiKey'), ['getApiKey', 'listRequests', 'revokeApiKey'])
    t.same(linked('createAccount'), ['getAccount'])
    for (const { operation } of operations) {
      for (const { operationId, parameters = {} } of Object.values(operation.responses['201']?.links ?? {})) {
        const target = operations.find((other) => other.operation.operationId === operationId)
        t.ok(target, operationId)
        t.same(
          Object.keys(parameters).filter(
            (name) => !target!.operation.parameters!.some((parameter) => parameter.name === name)
          ),
          []
        )
      }
    }
  })
})
