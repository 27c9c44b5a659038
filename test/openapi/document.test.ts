// Only on SQLite: checks the document and its viewer.

import { Ajv } from 'ajv'
import t from 'tap'
import { parse } from 'yaml'
import type { Example, Schema } from '../../src/openapi/document.ts'
import { startApp } from '../support/app.ts'
import { servedDocument } from './document.ts'

/** The tags that clients were promised, in their groups and in their order. A group can have others. */
const TAGS: Record<string, string[]> = { Pets: ['animals', 'categories'], Store: ['orders', 'inventory'] }

/** What clients were promised: every field with its type, and which are required. */
const INTERFACE: Record<string, { fields: Record<string, string>, required?: string[] }> = {
  NewPet: {
    fields: { name: 'string', categoryId: 'integer int64', status: 'PetStatus' },
    required: ['name', 'categoryId']
  },
  Pet: {
    fields: { id: 'integer int64', name: 'string', categoryId: 'integer int64', status: 'PetStatus' },
    required: ['id', 'name', 'categoryId']
  },
  NewCategory: { fields: { name: 'string', description: 'string' }, required: ['name'] },
  Category: { fields: { id: 'integer int64', name: 'string', description: 'string' }, required: ['id', 'name'] },
  Order: {
    fields: {
      id: 'integer int64',
      petId: 'integer int64',
      quantity: 'integer',
      shipDate: 'string date-time',
      complete: 'boolean'
    }
  },
  InventoryItem: {
    fields: { petId: 'integer int64', quantity: 'integer', status: 'PetStatus' },
    required: ['petId', 'quantity', 'status']
  },
  InventoryUpdate: { fields: { quantity: 'integer' }, required: ['quantity'] },
  Error: {
    fields: { code: 'ErrorCode', message: 'string', status: 'integer' },
    required: ['code', 'message', 'status']
  }
}

t.test('OpenAPI 3.2 names tags for readers, and nests them, as the extensions of 3.0.3 do', async (t) => {
  const { nobody } = await startApp(t)
  const old = await nobody.get('/openapi.json')
  const { body: { tags } } = await nobody.get('/openapi-3.2.json')
  const groups = old.body['x-tagGroups'] as Array<{ name: string, tags: string[] }>
  const isGroup = (name: string) => groups.some((group) => group.name === name)
  const leaves = (old.body.tags as Array<Record<string, string>>).filter(({ name }) => !isGroup(name!))
  t.ok(leaves.length > 5)
  for (const { name, description, 'x-displayName': summary } of leaves) {
    const { name: parent } = groups.find((group) => group.tags.includes(name!))!
    t.match(summary, /^[A-Z]/, 'a tag has a name for readers')
    const tag = tags.find((tag: { name: string }) => tag.name === name)
    t.strictSame(tag, { name, summary, description, parent, kind: 'nav' })
  }
})

t.test('the OpenAPI document', async (t) => {
  const { nobody, document, text, operations } = await servedDocument(t)
  const resolve = (schema: Schema): Schema =>
    schema.$ref === undefined ? schema : document.components.schemas[schema.$ref.split('/').at(-1)!]!

  await t.test('is valid OpenAPI 3.0.3 by the recommended rules', async (t) => {
    t.equal(document.openapi, '3.0.3')
    t.equal(document.info.version, '1.0.0')
  })

  await t.test('is served to everybody as JSON and as YAML, and only once to who asks again', async (t) => {
    for (const [path, type] of [
      ['/openapi.json', 'application/json; charset=utf-8'],
      ['/openapi.yaml', 'application/yaml; charset=utf-8']
    ] as const) {
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
    t.same(parse(yaml.text), JSON.parse(text))
    t.notMatch(yaml.text, /^\s*\S+: [&*]/m, 'without anchors')
  })

  await t.test('has the fields that clients were promised, and no others', async (t) => {
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
    const sent = operations
      .flatMap(({ operation }) => operation.requestBody?.content['application/json']?.schema?.$ref ?? [])
      .map((ref) => ref.split('/').at(-1)!)
    for (const [name, schema] of Object.entries(document.components.schemas)) {
      if (schema.type !== 'object') continue
      const { additionalProperties } = schema as { additionalProperties?: boolean }
      const isClosed = ['Error', 'RequestMatch'].includes(name) || sent.includes(name) ||
        (name.endsWith('Effect') && name !== 'FaultEffect')
      t.equal(additionalProperties, !isClosed, name)
    }
    for (const { operation } of operations) {
      const schema = operation.requestBody?.content['application/json']?.schema
      if (schema !== undefined) {
        const named = /^#\/components\/schemas\/(New[A-Z]|[A-Za-z]+Update$|RequestCheck$|Resend$)/
        t.match(schema.$ref, named, operation.operationId)
      }
    }
  })

  await t.test('shows examples that are valid, of what is sent and what is answered', async (t) => {
    const ajv = new Ajv({ strict: false, formats: { int64: true, uri: true, 'date-time': true } })
    ajv.addSchema({ $id: 'document', ...document })
    const isValid = (schema: Schema, example: unknown): unknown =>
      ajv.validate(JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"document#/')), example)
        ? true
        : ajv.errorsText()
    for (const { operation } of operations) {
      for (const [status, { content }] of Object.entries(operation.responses)) {
        const media = content?.['application/json']
        if (media === undefined) continue
        const examples =
          media.examples === undefined
            ? [media.example]
            : (Object.values(media.examples) as Example[]).map(({ value }) => value)
        t.ok(examples.length > 0 && examples[0] !== undefined, `${operation.operationId} ${status} has an example`)
        for (const example of examples) { t.equal(isValid(media.schema!, example), true, `${operation.operationId} ${status}`) }
      }
      for (const media of Object.values(operation.requestBody?.content ?? {})) { t.equal(isValid(media.schema!, media.example), true, `${operation.operationId} body`) }
    }
  })

  await t.test('shows an event of each type', async (t) => {
    const { content } = document.paths['/events']!['get']!.responses['200']!
    const shown = Object.entries(content!['application/json']!.examples ?? {}) as Array<
      [string, { value: Array<{ type: string }> }]
    >
    const { oneOf = [] } = document.components.schemas['Event'] as { oneOf?: unknown[] }
    t.ok(oneOf.length > 10)
    t.equal(shown.length, oneOf.length)
    for (const [type, { value }] of shown) t.match(value, [{ type }])
  })

  await t.test('groups its tags, and names every one that operations carry', async (t) => {
    const groups = Object.fromEntries(document['x-tagGroups'].map(({ name, tags }) => [name, tags]))
    for (const [group, promised] of Object.entries(TAGS)) {
      t.same(groups[group]!.filter((tag) => promised.includes(tag)), promised, group)
    }
    t.same(Object.keys(groups), ['Pets', 'Store', 'Platform'])
    const used = [...new Set(operations.flatMap(({ operation }) => operation.tags))]
    t.same(Object.values(groups).flat().sort(), [...used].sort())
    for (const { name, description, 'x-parent': parent } of document.tags) {
      t.ok(description, `${name} is described`)
      t.equal(used.includes(name), !['Pets', 'Store'].includes(name), `${name} carries operations, or navigates`)
      t.equal(
        parent,
        groups['Pets']!.includes(name) ? 'Pets' : groups['Store']!.includes(name) ? 'Store' : undefined,
        `parent of ${name}`
      )
    }
  })

  await t.test('says of ids that they are int64 from 1, and of text what it may hold', async (t) => {
    for (const { operation } of operations) {
      for (const { in: place, name, schema } of operation.parameters ?? []) {
        const { type, format, minimum, maximum, pattern } = resolve(schema) as Schema & {
          format?: string
          minimum?: number
        }
        if (place === 'path' && name !== 'messageId') {
          t.match(
            { type, format, minimum, maximum },
            { type: 'integer', format: 'int64', minimum: 1, maximum: undefined }
          )
        }
        if (name === 'cursor') t.equal(pattern, '^[0-9a-z]{1,11}$')
        if (name === 'limit') t.match(schema, { type: 'integer', minimum: 1, maximum: 100, default: 20 })
      }
    }
    t.match(document.components.schemas['NewPet']!.properties!['name'], {
      minLength: 1,
      maxLength: 255,
      pattern: '^[^\\x00]*$'
    })
    t.match(document.components.schemas['CategoryUpdate']!.properties!['description'], {
      type: 'string',
      nullable: true
    })
    t.match(document.components.schemas['OrderUpdate']!.properties!['shipDate'], {
      type: 'string',
      format: 'date-time',
      nullable: true
    })
  })
})

t.test('with a base path and a public address the document and its pages say so', async (t) => {
  const { nobody } = await startApp(t, {
    BASE_PATH: '/v1',
    PUBLIC_URL: 'https://pets.example',
    PET_READ_SUNSET: '2027-02-03'
  })
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
    'service-desc': [
      { href: 'https://pets.example/v1/openapi.json' },
      { href: 'https://pets.example/v1/openapi.yaml' }
    ],
    status: [{ href: 'https://pets.example/readyz' }]
  })
})

t.test('with a base path alone, addresses are those at which the client asks', async (t) => {
  const { nobody, port } = await startApp(t, { BASE_PATH: '/v1' })
  const { body: document } = await nobody.get('/v1/openapi.json')
  t.same(document.servers.map(({ url }: { url: string }) => url), [`http://127.0.0.1:${port}/v1`])
  t.match(document.info.description, /curl http:\/\/127\.0\.0\.1:\d+\/v1\/accounts/)
})

t.test('the catalog of RFC 9727 leads to the document', async (t) => {
  const { nobody } = await startApp(t)
  const { status, headers, body } = await nobody.get('/.well-known/api-catalog?unknown=1')
  t.equal(status, 200)
  t.match(
    headers['content-type'],
    /^application\/linkset\+json; profile="https:\/\/www\.rfc-editor\.org\/info\/rfc9727"/
  )
  t.equal(headers['access-control-allow-origin'], '*')
  for (const { href } of [
    ...body.linkset[0]['service-desc'],
    ...body.linkset[0]['service-doc'],
    ...body.linkset[0].status
  ]) {
    t.equal((await nobody.get(href)).status, 200, href)
  }
  const head = await nobody.request('HEAD', '/.well-known/api-catalog')
  t.equal(head.status, 200)
  t.match(head.headers.link, '</.well-known/api-catalog>; rel="api-catalog"')
  t.match(head.headers.link, '</openapi.json>; rel="service-desc"')
})

/** A schema in the words of the promise. */
function typeOf ({ $ref, type, format }: Schema & { format?: string }): string {
  return $ref?.split('/').at(-1) ?? [type, format].filter((word) => word !== undefined).join(' ')
}
