import { createConfig, lintFromString } from '@redocly/openapi-core'
import { Ajv } from 'ajv'
import t from 'tap'
import { parse } from 'yaml'
import type { Answer, Document, Operation, Schema } from '../../src/openapi/document.ts'
import { allCodes } from '../../src/openapi/errors.ts'
import { startApp } from '../support/app.ts'

type Full = Document & {
  tags: Array<{ name: string, description: string, 'x-parent'?: string }>
  security: unknown
  'x-tagGroups': Array<{ name: string, tags: string[] }>
}
type Extended = Operation & Record<`x-${string}`, unknown> & { summary?: string }

/** The interface document's own tables: every field with its type, and which are required. */
const INTERFACE: Record<string, { fields: Record<string, string>, required?: string[] }> = {
  NewPet: { fields: { name: 'string', categoryId: 'integer int64', status: 'PetStatus' }, required: ['name', 'categoryId'] },
  Pet: { fields: { id: 'integer int64', name: 'string', categoryId: 'integer int64', status: 'PetStatus' }, required: ['id', 'name', 'categoryId'] },
  NewCategory: { fields: { name: 'string', description: 'string' }, required: ['name'] },
  Category: { fields: { id: 'integer int64', name: 'string', description: 'string' }, required: ['id', 'name'] },
  Order: { fields: { id: 'integer int64', petId: 'integer int64', quantity: 'integer', shipDate: 'string date-time', complete: 'boolean' } },
  InventoryItem: { fields: { petId: 'integer int64', quantity: 'integer', status: 'PetStatus' }, required: ['petId', 'quantity', 'status'] },
  InventoryUpdate: { fields: { quantity: 'integer' }, required: ['quantity'] },
  Error: { fields: { code: 'string', message: 'string', status: 'integer' }, required: ['code', 'message', 'status'] }
}

/** operationId, tag, success, and the codes that are the operation's own. */
const OPERATIONS: Record<string, [string, string, number, ...string[]]> = {
  'post /accounts': ['createAccount', 'accounts', 201, 'signup_closed'],
  'get /account': ['getAccount', 'accounts', 200],
  'delete /account': ['deleteAccount', 'accounts', 204],
  'get /account/keys': ['listApiKeys', 'accounts', 200],
  'post /account/keys': ['createApiKey', 'accounts', 201],
  'delete /account/keys/{keyId}': ['revokeApiKey', 'accounts', 204, 'api_key_not_found', 'last_api_key'],
  'get /pets': ['listPets', 'animals', 200],
  'post /pets': ['createPet', 'animals', 201, 'unknown_category'],
  'get /pets/{petId}': ['getPet', 'animals', 200, 'operation_sunset', 'pet_not_found'],
  'patch /pets/{petId}': ['updatePet', 'animals', 200, 'pet_not_found', 'invalid_status_transition', 'unknown_category'],
  'delete /pets/{petId}': ['deletePet', 'animals', 204, 'pet_not_found', 'pet_in_use'],
  'get /categories': ['listCategories', 'categories', 200],
  'post /categories': ['createCategory', 'categories', 201],
  'get /categories/{categoryId}': ['getCategory', 'categories', 200, 'category_not_found'],
  'patch /categories/{categoryId}': ['updateCategory', 'categories', 200, 'category_not_found'],
  'delete /categories/{categoryId}': ['deleteCategory', 'categories', 204, 'category_not_found', 'category_in_use'],
  'get /store/orders': ['listOrders', 'orders', 200],
  'post /store/orders': ['placeOrder', 'orders', 201, 'unknown_pet', 'pet_not_available', 'insufficient_stock'],
  'get /store/orders/{orderId}': ['getOrder', 'orders', 200, 'order_not_found'],
  'patch /store/orders/{orderId}': ['updateOrder', 'orders', 200, 'order_not_found', 'order_already_shipped'],
  'delete /store/orders/{orderId}': ['cancelOrder', 'orders', 204, 'order_not_found', 'order_already_shipped'],
  'get /inventory': ['listInventory', 'inventory', 200],
  'get /inventory/{petId}': ['getInventoryItem', 'inventory', 200, 'pet_not_found', 'inventory_not_found'],
  'patch /inventory/{petId}': ['updateInventory', 'inventory', 200, 'pet_not_found'],
  'post /messages': ['createMessage', 'messages', 201],
  'get /messages': ['listMessages', 'messages', 200],
  'get /messages/{messageId}': ['getMessage', 'messages', 200, 'message_not_found'],
  'get /events': ['listEvents', 'events', 200, 'events_expired'],
  'get /webhooks': ['listWebhooks', 'webhooks', 200],
  'post /webhooks': ['createWebhook', 'webhooks', 201, 'webhook_limit_reached'],
  'get /webhooks/{webhookId}': ['getWebhook', 'webhooks', 200, 'webhook_not_found'],
  'patch /webhooks/{webhookId}': ['updateWebhook', 'webhooks', 200, 'webhook_not_found'],
  'delete /webhooks/{webhookId}': ['deleteWebhook', 'webhooks', 204, 'webhook_not_found'],
  'post /webhooks/{webhookId}/rotate': ['rotateWebhookSecret', 'webhooks', 200, 'webhook_not_found'],
  'post /webhooks/{webhookId}/test': ['testWebhook', 'webhooks', 202, 'webhook_not_found']
}

const SECRET = ['createAccount', 'createApiKey', 'createWebhook', 'rotateWebhookSecret']

/** The closed list of codes. */
const CODES: Record<number, string[]> = {
  400: ['invalid_json', 'invalid_content_type', 'validation_failed', 'bad_request'],
  401: ['unauthorized'],
  403: ['read_only_key', 'signup_closed'],
  404: ['route_not_found', 'pet_not_found', 'category_not_found', 'order_not_found', 'inventory_not_found', 'message_not_found', 'api_key_not_found', 'webhook_not_found'],
  405: ['method_not_allowed'],
  408: ['request_timeout'],
  409: ['unknown_category', 'unknown_pet', 'last_api_key', 'webhook_limit_reached', 'category_in_use', 'pet_in_use', 'pet_not_available', 'insufficient_stock', 'order_already_shipped', 'invalid_status_transition', 'idempotency_key_in_use'],
  410: ['operation_sunset', 'events_expired'],
  412: ['precondition_failed'],
  413: ['payload_too_large'],
  414: ['uri_too_long'],
  422: ['idempotency_key_reused'],
  429: ['rate_limited'],
  431: ['headers_too_large'],
  500: ['internal_error'],
  503: ['overloaded', 'database_unavailable', 'shutting_down']
}

t.test('the OpenAPI document', async (t) => {
  const { nobody } = await startApp(t)
  const { body, text } = await nobody.get('/openapi.json')
  const document = body as Full
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation: operation as Extended })))
  const resolve = (schema: Schema): Schema => schema.$ref === undefined ? schema : document.components.schemas[schema.$ref.split('/').at(-1)!]!
  const codesOf = ({ responses }: Operation): string[] =>
    Object.entries(responses).filter(([status]) => Number(status) >= 400).flatMap(([, { content }]) => Object.keys(content?.['application/json']?.examples ?? {}))

  await t.test('is valid OpenAPI 3.0.3 by the recommended rules', async (t) => {
    t.equal(document.openapi, '3.0.3')
    t.equal(document.info.version, '1.0.0')
    const config = await createConfig({ extends: ['recommended'] })
    const problems = await lintFromString({ source: text, absoluteRef: 'openapi.json', config })
    t.same(problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} (${location[0]?.pointer})`), [])
  })

  await t.test('is served to everybody as JSON and as YAML, and only once to who asks again', async (t) => {
    for (const [path, type] of [['/openapi.json', 'application/json; charset=utf-8'], ['/openapi.yaml', 'application/yaml; charset=utf-8']] as const) {
      const { status, headers } = await nobody.get(`${path}?unknown=1`, { origin: 'https://elsewhere.example' })
      t.equal(status, 200)
      t.equal(headers['content-type'], type)
      t.equal(headers['access-control-allow-origin'], '*')
      t.equal(headers['cache-control'], 'no-cache')
      t.equal((await nobody.get(path, { 'if-none-match': headers.etag! })).status, 304)
      const head = await nobody.request('HEAD', path)
      t.equal(head.headers.etag, headers.etag)
    }
    const yaml = await nobody.get('/openapi.yaml')
    t.same(parse(yaml.text), document)
    t.notMatch(yaml.text, /^\s*\S+: [&*]/m, 'without anchors')
  })

  await t.test('has the fields of the interface document, and no others', async (t) => {
    for (const [name, { fields, required }] of Object.entries(INTERFACE)) {
      const { properties = {}, required: actual } = document.components.schemas[name]!
      const found = Object.fromEntries(Object.entries(properties).map(([field, schema]) => [field, typeOf(schema)]))
      t.same(found, name === 'InventoryItem' ? { ...fields, quantity: 'integer int64' } : fields, name)
      t.same(actual, required, `required of ${name}`)
    }
    t.same(document.components.schemas['PetStatus']!.enum, ['available', 'pending', 'sold'])
    t.match(document.components.schemas['Pets'], { type: 'array', items: { $ref: '#/components/schemas/Pet' } })
    const message = document.components.schemas['Message']!
    t.same(Object.keys(message.properties!), ['id', 'message', 'status', 'createdAt'])
  })

  await t.test('names its components, closes what clients send, and speaks OpenAPI 3.0', async (t) => {
    t.notMatch(text, /def-\d/)
    t.notMatch(text, /"(const|allOf|patternProperties)":|"type":"null"|"type":\[/)
    const sent = operations.flatMap(({ operation }) => operation.requestBody?.content['application/json']?.schema?.$ref ?? []).map((ref) => ref.split('/').at(-1)!)
    for (const [name, schema] of Object.entries(document.components.schemas)) {
      if (schema.type !== 'object') continue
      const { additionalProperties } = schema as { additionalProperties?: boolean }
      t.equal(additionalProperties, name === 'Error' || sent.includes(name) ? false : undefined, name)
    }
    for (const { operation } of operations) {
      const schema = operation.requestBody?.content['application/json']?.schema
      if (schema !== undefined) t.match(schema.$ref, /^#\/components\/schemas\/(New[A-Z]|[A-Za-z]+Update$)/, operation.operationId)
    }
  })

  await t.test('has every operation of the contract, each with what a reader needs', async (t) => {
    const tags = new Set(operations.flatMap(({ operation }) => operation.tags))
    const expected = Object.entries(OPERATIONS).filter(([, [, tag]]) => tags.has(tag))
    t.same(Object.fromEntries(operations.map(({ path, method, operation }) => [`${method} ${path}`, operation.operationId])),
      Object.fromEntries(expected.map(([name, [id]]) => [name, id])))
    for (const { path, method, operation } of operations) {
      const [id, tag, status] = OPERATIONS[`${method} ${path}`]!
      t.same(operation.tags, [tag], `tag of ${id}`)
      t.match(operation.summary, /^[A-Z].{5,60}[^.]$/, `summary of ${id}`)
      t.match(operation.description, /^[A-Z].{10,}\.$/s, `description of ${id}`)
      t.same(Object.keys(operation.responses).filter((code) => code.startsWith('2')), [String(status)], `success of ${id}`)
      for (const answer of Object.values(operation.responses)) t.match(answer.description, /^(?!Default Response).+\.$/s, `descriptions of ${id}`)
      t.same(operation.security, id === 'createAccount' ? [] : undefined, `security of ${id}`)
    }
    t.same(document.security, [{ bearerAuth: [] }])
  })

  await t.test('shows examples that are valid, of what is sent and what is answered', async (t) => {
    const ajv = new Ajv({ strict: false, formats: { int64: true, uri: true, 'date-time': true } })
    ajv.addSchema({ $id: 'document', ...document })
    const isValid = (schema: Schema, example: unknown): unknown =>
      ajv.validate(JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"document#/')), example) ? true : ajv.errorsText()
    for (const { operation } of operations) {
      for (const [status, { content }] of Object.entries(operation.responses)) {
        const media = content?.['application/json']
        if (media === undefined) continue
        const examples = media.examples === undefined ? [media.example] : Object.values(media.examples).map(({ value }) => value)
        t.ok(examples.length > 0 && examples[0] !== undefined, `${operation.operationId} ${status} has an example`)
        for (const example of examples) t.equal(isValid(media.schema!, example), true, `${operation.operationId} ${status}`)
      }
      for (const media of Object.values(operation.requestBody?.content ?? {})) t.equal(isValid(media.schema!, media.example), true, `${operation.operationId} body`)
    }
  })

  await t.test('shows an event of each type', async (t) => {
    const { content } = document.paths['/events']!['get']!.responses['200']!
    const shown = Object.entries(content!['application/json']!.examples ?? {}) as Array<[string, { value: Array<{ type: string }> }]>
    const { oneOf = [] } = document.components.schemas['Event'] as { oneOf?: unknown[] }
    t.ok(oneOf.length > 10)
    t.equal(shown.length, oneOf.length)
    for (const [type, { value }] of shown) t.match(value, [{ type }])
  })

  await t.test('documents the errors of each operation, and of no other', async (t) => {
    const statuses = Object.fromEntries(Object.entries(CODES).flatMap(([status, codes]) => codes.map((code) => [code, Number(status)])))
    for (const { code, status } of allCodes()) t.equal(statuses[code], status, `${code} is on the list`)

    for (const { path, method, operation } of operations) {
      const [id, , , ...own] = OPERATIONS[`${method} ${path}`]!
      const write = method !== 'get'
      const keyed = write && !SECRET.includes(id)
      const expected = [
        'validation_failed', 'bad_request', 'request_timeout', 'uri_too_long', 'headers_too_large', 'rate_limited', 'internal_error',
        'overloaded', 'database_unavailable', 'shutting_down',
        ...id === 'createAccount' ? [] : ['unauthorized', ...write ? ['read_only_key'] : []],
        ...operation.requestBody === undefined ? [] : ['invalid_json', 'invalid_content_type', 'payload_too_large'],
        ...keyed ? ['idempotency_key_in_use', 'idempotency_key_reused'] : [],
        ...['patch', 'delete'].includes(method) ? ['precondition_failed'] : [],
        ...own
      ]
      t.same(codesOf(operation).sort(), expected.sort(), id)
      for (const [status, { content }] of Object.entries(operation.responses)) {
        const { schema, examples = {} } = content?.['application/json'] ?? {}
        if (Number(status) < 400) continue
        t.equal(schema?.$ref, '#/components/schemas/Error')
        for (const [code, { value }] of Object.entries(examples)) {
          t.match(value, { code, status: Number(status), message: /^[A-Z"a-z].*\.$/ }, `${id} ${code}`)
          t.equal(statuses[code], Number(status))
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
      const write = method !== 'get'
      t.equal(fields.includes('Idempotency-Key'), write && !SECRET.includes(id), `Idempotency-Key of ${id}`)
      t.equal(fields.includes('If-Match'), ['patch', 'delete'].includes(method), `If-Match of ${id}`)
      t.equal(fields.includes('If-None-Match'), ['get', 'patch', 'delete'].includes(method), `If-None-Match of ${id}`)
      if (requestBody !== undefined) {
        t.same(Object.keys(requestBody.content), method === 'patch' ? ['application/json', 'application/merge-patch+json'] : ['application/json'])
      }
      for (const [status, answer] of Object.entries(responses)) {
        t.ok(carried(answer).includes('Request-Id'), `Request-Id of ${id} ${status}`)
        t.equal(carried(answer).includes('ETag'), status === '304' || (status.startsWith('2') && answer.content !== undefined), `ETag of ${id} ${status}`)
        if (status === '401') t.ok(carried(answer).includes('WWW-Authenticate'))
        if (status === '429') t.same(['RateLimit', 'RateLimit-Policy', 'Retry-After'].filter((name) => !carried(answer).includes(name)), [])
        if (status === '503') t.ok(carried(answer).includes('Retry-After'))
        if (status === '201') t.equal(carried(answer).includes('Location'), id !== 'createApiKey', `Location of ${id}`)
        if (id === 'getPet' && ['200', '304', '404', '410'].includes(status)) {
          t.same(['Deprecation', 'Sunset', 'Link'].filter((name) => !carried(answer).includes(name)), [])
        }
      }
      t.equal(responses['304'] !== undefined, method === 'get')
      t.equal(responses['304']?.content, undefined)
    }
  })

  await t.test('groups its tags, and names every one that operations carry', async (t) => {
    const groups = Object.fromEntries(document['x-tagGroups'].map(({ name, tags }) => [name, tags]))
    t.same(groups['Pets'], ['animals', 'categories'])
    t.same(groups['Store'], ['orders', 'inventory'])
    t.same(Object.keys(groups), ['Pets', 'Store', 'Platform'])
    const used = [...new Set(operations.flatMap(({ operation }) => operation.tags))]
    t.same(Object.values(groups).flat().sort(), [...used].sort())
    for (const { name, description, 'x-parent': parent } of document.tags) {
      t.ok(description, `${name} is described`)
      t.equal(used.includes(name), !['Pets', 'Store'].includes(name), `${name} carries operations, or navigates`)
      t.equal(parent, groups['Pets']!.includes(name) ? 'Pets' : groups['Store']!.includes(name) ? 'Store' : undefined, `parent of ${name}`)
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
      const stability = id === 'cancelOrder' ? 'beta' : ['updateInventory', 'listEvents'].includes(id) || id.includes('Webhook') ? 'experimental' : undefined
      t.equal(operation['x-stability'], stability, `x-stability of ${id}`)
      t.same(operation['x-badges'], stability === undefined ? undefined : [{ name: stability }])
      t.equal(operation['x-hideTryItPanel'], id === 'listOrders' ? true : undefined)
      t.equal(operation.deprecated, id === 'getPet' ? true : undefined)
    }
  })

  await t.test('links what is created to what can be done with its id', async (t) => {
    const linked = (id: string) => Object.keys(operations.find(({ operation }) => operation.operationId === id)!.operation.responses['201']!.links ?? {}).sort()
    t.same(linked('createPet'), ['deletePet', 'getInventoryItem', 'getPet', 'listInventory', 'listOrders', 'listPets', 'placeOrder', 'updateInventory', 'updatePet'])
    t.same(linked('createCategory'), ['createPet', 'deleteCategory', 'getCategory', 'listPets', 'updateCategory'])
    t.same(linked('placeOrder'), ['cancelOrder', 'getOrder', 'updateOrder'])
    t.same(linked('createMessage'), ['getMessage'])
    t.same(linked('createApiKey'), ['revokeApiKey'])
    t.same(linked('createAccount'), ['getAccount'])
    for (const { operation } of operations) {
      for (const { operationId, parameters = {} } of Object.values(operation.responses['201']?.links ?? {})) {
        const target = operations.find((other) => other.operation.operationId === operationId)
        t.ok(target, operationId)
        t.same(Object.keys(parameters).filter((name) => !target!.operation.parameters!.some((parameter) => parameter.name === name)), [])
      }
    }
  })

  await t.test('says of ids that they are int64 from 1, and of text what it may hold', async (t) => {
    for (const { operation } of operations) {
      for (const { in: place, name, schema } of operation.parameters ?? []) {
        const { type, format, minimum, maximum, pattern } = resolve(schema) as Schema & { format?: string, minimum?: number }
        if (place === 'path' && name !== 'messageId') t.match({ type, format, minimum, maximum }, { type: 'integer', format: 'int64', minimum: 1, maximum: undefined })
        if (name === 'cursor') t.equal(pattern, '^[0-9a-z]{1,10}$')
        if (name === 'limit') t.match(schema, { type: 'integer', minimum: 1, maximum: 100, default: 20 })
      }
    }
    t.match(document.components.schemas['NewPet']!.properties!['name'], { minLength: 1, maxLength: 255, pattern: '^[^\\u0000]*$' })
    t.match(document.components.schemas['CategoryUpdate']!.properties!['description'], { type: 'string', nullable: true })
    t.match(document.components.schemas['OrderUpdate']!.properties!['shipDate'], { type: 'string', format: 'date-time', nullable: true })
  })
})

t.test('with a base path and a public address the document and its pages say so', async (t) => {
  const { nobody } = await startApp(t, { BASE_PATH: '/v1', PUBLIC_URL: 'https://pets.example', PET_READ_SUNSET: '2027-02-03' })
  const { body: document } = await nobody.get('/v1/openapi.json')
  t.same(document.servers.map(({ url }: { url: string }) => url), ['https://pets.example/v1'])
  t.ok(document.paths['/pets'])
  t.match(document.info.description, 'curl https://pets.example/v1/accounts')
  t.match(document.paths['/pets/{petId}'].get, { 'x-deprecated-sunset': '2027-02-03', 'x-sunset': '2027-02-03' })
  t.equal((await nobody.get('/openapi.json')).status, 404)
  t.equal((await nobody.get('/v1')).status, 200)
  t.equal((await nobody.get('/v1/docs')).status, 200)

  const catalog = await nobody.get('/.well-known/api-catalog')
  t.match(catalog.body.linkset[0], {
    anchor: 'https://pets.example/v1',
    'service-desc': [{ href: 'https://pets.example/v1/openapi.json' }, { href: 'https://pets.example/v1/openapi.yaml' }],
    status: [{ href: 'https://pets.example/readyz' }]
  })
})

t.test('with a base path alone, addresses are relative, but for those of requests to paste', async (t) => {
  const { nobody } = await startApp(t, { BASE_PATH: '/v1' })
  const { body: document } = await nobody.get('/v1/openapi.json')
  t.same(document.servers.map(({ url }: { url: string }) => url), ['/v1'])
  t.match(document.info.description, /curl http:\/\/127\.0\.0\.1:\d+\/v1\/accounts/)
})

t.test('the catalog of RFC 9727 leads to the document', async (t) => {
  const { nobody } = await startApp(t)
  const { status, headers, body } = await nobody.get('/.well-known/api-catalog?unknown=1')
  t.equal(status, 200)
  t.match(headers['content-type'], /^application\/linkset\+json; profile="https:\/\/www\.rfc-editor\.org\/info\/rfc9727"/)
  t.equal(headers['access-control-allow-origin'], '*')
  for (const { href } of [...body.linkset[0]['service-desc'], ...body.linkset[0]['service-doc'], ...body.linkset[0].status]) {
    t.equal((await nobody.get(href)).status, 200, href)
  }
  const head = await nobody.request('HEAD', '/.well-known/api-catalog')
  t.equal(head.status, 200)
  t.match(head.headers.link, '</.well-known/api-catalog>; rel="api-catalog"')
  t.match(head.headers.link, '</openapi.json>; rel="service-desc"')
})

/** A schema as the interface document writes it. */
function typeOf ({ $ref, type, format }: Schema & { format?: string }): string {
  return $ref?.split('/').at(-1) ?? [type, format].filter((word) => word !== undefined).join(' ')
}
