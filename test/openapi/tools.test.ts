// Only on SQLite: checks the document and its viewer.

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { load } from 'js-yaml'
import t from 'tap'
import type { Parameter, Schema } from '../../src/openapi/document.ts'
import { startApp } from '../support/app.ts'
import { petstore } from '../support/cli.ts'
import { servedDocument } from './document.ts'

const run = promisify(execFile)

// Each subtest is a rule that tools from elsewhere need: they refuse or misread a document that breaks it.
t.test('the document for generators, viewers and test tools', async (t) => {
  const { document, text, operations } = await servedDocument(t)
  const { schemas } = document.components

  await t.test('is bounded', async (t) => {
    const { nobody } = await startApp(t, { LAB: 'false' })
    const { text: withoutLab } = await nobody.get('/openapi.json')
    t.ok(Buffer.byteLength(withoutLab) <= 180_000, `${Buffer.byteLength(withoutLab)} bytes without the lab`)
    t.ok(Buffer.byteLength(text) <= 266_240, `${Buffer.byteLength(text)} bytes with the lab`)
    t.ok(document.info.description.length <= 1_500, 'the description, which generators copy into every file, is short')
  })

  await t.test('writes out no parameter and no error twice', async (t) => {
    const served = JSON.parse(text)
    const written = new Map<string, number>()
    for (const methods of Object.values<any>(served.paths)) {
      for (const { parameters = [], responses } of Object.values<any>(methods)) {
        const answers = Object.entries<any>(responses).filter(([status]) => status >= '300').map(([, answer]) => answer)
        for (const part of [...parameters, ...answers]) {
          if (part.$ref === undefined) written.set(JSON.stringify(part), (written.get(JSON.stringify(part)) ?? 0) + 1)
        }
        const headers = answers.flatMap((answer) => Object.entries<any>(answer.headers ?? {}))
        t.same(headers.filter(([, header]) => header.$ref === undefined && !header.required), [])
        for (const { content } of Object.values<any>(responses)) {
          for (const { value } of Object.values<any>(content?.['application/json']?.examples ?? {})) {
            t.equal(value?.code, undefined, 'examples of errors are components')
          }
        }
      }
    }
    t.same([...written].filter(([, times]) => times > 1), [])
    t.ok(Object.keys(served.components.parameters).includes('IfMatch'))
    t.ok(Object.keys(served.components.responses).includes('PetNotFound'))
  })

  await t.test('has no component that it does not use, with the lab and without', async (t) => {
    const { nobody } = await startApp(t, { LAB: 'false' })
    for (const served of [text, (await nobody.get('/openapi.json')).text]) {
      for (const [kind, parts] of Object.entries<object>(JSON.parse(served).components)) {
        if (kind === 'securitySchemes') continue
        for (const name of Object.keys(parts)) t.match(served, `"#/components/${kind}/${name}"`)
      }
    }
  })

  await t.test('links by parameters only: swagger-parser cannot read a link with a body', async (t) => {
    const links = operations.flatMap(({ operation }) => Object.values(operation.responses['201']?.links ?? {}))
    t.ok(links.length > 10)
    for (const link of links) t.notOk('requestBody' in link, JSON.stringify(link))
  })

  await t.test('has patterns that RE2 and PCRE read', async (t) => {
    const patterns = [...text.matchAll(/"pattern":("(?:[^"\\]|\\.)*")/g)].map(([, pattern]) => JSON.parse(pattern!))
    t.ok(patterns.includes('^[^\\x00]*$'))
    for (const pattern of patterns) t.notMatch(pattern, /\\u|\(\?[=!<]/)
  })

  await t.test('has a pattern for lists of entity tags', async (t) => {
    const fields = operations.flatMap(({ operation: { parameters = [] } }) => parameters)
      .filter(({ name }) => ['If-Match', 'If-None-Match'].includes(name))
    t.ok(fields.length > 40, `${fields.length} fields`)
    for (const { schema: { type, pattern } } of fields) {
      t.equal(type, 'string')
      for (const field of ['*', '"3"', 'W/"3", "a"', '']) t.match(field, new RegExp(pattern!, 'u'))
      for (const field of ['3', 'W/3', '"3" "4"', '*, "3"']) t.notMatch(field, new RegExp(pattern!, 'u'))
    }
  })

  await t.test('names the codes of errors in one enumeration, by status', async (t) => {
    const { enum: codes = [], description } = schemas['ErrorCode']!
    t.same(schemas['Error']!.properties!['code'], { $ref: '#/components/schemas/ErrorCode' })
    const listed = [...description!.matchAll(/^- (\d{3}): (.*)$/gm)]
    t.same(listed.map(([, status]) => status), listed.map(([, status]) => status).sort())
    const listedCodes = listed.flatMap(([, , names]) => names!.replaceAll('`', '').split(', '))
    // A fault of the lab has several statuses.
    t.same([...new Set(listedCodes)], codes)
    t.match(listed[0]![2], '`bad_request`, `invalid_content_type`, `invalid_json`, `validation_failed`')
    for (const { operation } of operations) {
      const documented = Object.entries(operation.responses).filter(([status]) => Number(status) >= 400)
        .flatMap(([, { content }]) => Object.keys(content!['application/json']!.examples!))
      t.same(operation['x-error-codes'], [...new Set(documented)], operation.operationId)
      t.same(documented.filter((code) => !codes.includes(code)), [], operation.operationId)
    }
  })

  await t.test('names every enumeration that it uses twice, and no two with a constant in common', async (t) => {
    for (const name of ['EventType', 'MessageStatus', 'SortOrder', 'PetStatus', 'ErrorCode']) {
      t.ok(schemas[name]?.enum, name)
    }
    const named = Object.values<Schema & { 'x-enum-varnames'?: string[] }>(schemas).flatMap((schema) =>
      schema['x-enum-varnames'] ?? schema.enum ?? [])
    t.equal(new Set(named).size, named.length)
    t.match(schemas['SortOrder'], { enum: ['id', '-id'], 'x-enum-varnames': ['Ascending', 'Descending'] })
    const { items } = schemas['NewWebhook']!.properties!['events']!
    t.same(items, { $ref: '#/components/schemas/EventType' })
    const inline: string[] = []
    for (const [name, { properties = {} }] of Object.entries(schemas)) {
      for (const [member, schema] of Object.entries(properties)) {
        if ((schema.enum ?? []).length > 1) inline.push(schema.enum!.join())
        if (name.endsWith('EventData')) t.equal(schema.properties, undefined, `${name}.${member} has a name`)
      }
    }
    t.equal(new Set(inline).size, inline.length, inline.join(' | '))
  })

  await t.test('has no defaults in what clients send: generators would make these members required', async (t) => {
    for (const [name, { properties = {} }] of Object.entries(schemas)) {
      for (const [member, schema] of Object.entries(properties)) {
        t.equal(schema.default, undefined, `${name}.${member}`)
      }
    }
    t.match(schemas['NewOrder']!.properties!['quantity']!.description, 'Default: 1')
  })

  await t.test('describes a message of the event stream, and the answer to a test of a webhook', async (t) => {
    const { content } = document.paths['/events']!['get']!.responses['200']!
    t.same(content!['text/event-stream']!.schema, { $ref: '#/components/schemas/EventStreamMessage' })
    const { id, event, data } = content!['text/event-stream']!.example as Record<string, string>
    t.match(JSON.parse(data!), { id: Number(id), type: event })
    t.same(Object.keys(schemas['EventStreamMessage']!.properties!), ['id', 'event', 'data'])
    const { content: tested } = document.paths['/webhooks/{webhookId}/test']!['post']!.responses['202']!
    t.same(tested!['application/json']!.schema, { $ref: '#/components/schemas/TestDelivery' })
  })

  await t.test('has examples and descriptions at the parameters', async (t) => {
    for (const { operation } of operations) {
      for (const { name, description, example, schema } of operation.parameters ?? [] as Parameter[]) {
        t.ok(description, `${operation.operationId} describes ${name}`)
        t.not(example, undefined, `${operation.operationId} has an example of ${name}`)
        t.equal(schema.example, undefined)
      }
    }
  })

  await t.test('names its contact, and describes its tags in order', async (t) => {
    t.match(document.info, { contact: { name: String, url: /^https:.*\/issues$/ } }, 'not the service itself')
    const names = document.tags.map((tag) => tag['x-displayName'] ?? tag.name)
    t.same(names.slice(0, 3), ['Pets', 'Pets', 'Categories'])
    const { description } = document.info
    for (const word of ['GET /events', 'Webhooks', 'lab', 'petstore-lab/client']) t.match(description, word)
    const tags = document.tags.map(({ name }) => name)
    const groups = document['x-tagGroups'].flatMap(({ name, tags }) => [name, ...tags])
    t.same(tags, groups.filter((name) => tags.includes(name)))
  })

  await t.test('says that ids fit a double', async (t) => {
    const ids = Object.entries(schemas).flatMap(([name, { properties = {} }]) => Object.entries(properties)
      .filter(([member, schema]) => /^(id|\w+Id)$/.test(member) && isInt64(schema))
      // Events have numbers.
      .filter(([member]) => member !== 'eventId' && !name.endsWith('Event'))
      .map(([member, schema]) => [`${name}.${member}`, schema.description] as const))
    t.ok(ids.length >= 15, `${ids.length} ids`)
    for (const [name, description] of ids) t.match(description, '2^53 - 1', name)
  })

  await t.test('is read by YAML 1.1 as by YAML 1.2', async (t) => {
    // Printed by another process: tap changes the tags of the package yaml in this one.
    const { out: yaml } = await petstore(t, ['openapi', '--yaml'], { env: { LAB: 'true' } })
    const expected = JSON.parse((await petstore(t, ['openapi'], { env: { LAB: 'true' } })).out)
    t.same(Object.keys(expected.paths), Object.keys(document.paths))
    t.same(load(yaml), expected)
    const python = 'import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)'
    await t.test('by PyYAML', await skipWithout('python3', ['-c', 'import yaml']), async (t) => {
      t.same(JSON.parse(await pipe('python3', ['-c', python], yaml)), expected)
    })
    const ruby = 'print JSON.generate(YAML.safe_load($stdin.read))'
    await t.test('by Psych', await skipWithout('ruby', ['-v']), async (t) => {
      t.same(JSON.parse(await pipe('ruby', ['-ryaml', '-rjson', '-e', ruby], yaml)), expected)
    })
  })
})

t.test('the document names the address at which the client asks for it', async (t) => {
  const { nobody } = await startApp(t, { BASE_PATH: '/v1' })
  const read = async (host: string) => await nobody.get('/v1/openapi.json', { host })
  const { body, text, headers } = await read('pets.example:8080')
  t.same(body.servers.map(({ url }: { url: string }) => url), ['http://pets.example:8080/v1'])
  t.match(body.info.description, 'curl http://pets.example:8080/v1/accounts')
  t.notMatch(text, 'petstore.invalid')
  t.not((await read('other.example')).headers.etag, headers.etag)
  t.notMatch((await read('"><script>')).text, '<script>')
  t.match((await nobody.get('/v1/openapi.yaml', { host: 'pets.example:8080' })).text, 'url: http://pets.example:8080/v1')
})

function isInt64 (schema: Schema & { format?: string }): boolean {
  return schema.format === 'int64'
}

async function skipWithout (program: string, args: string[]): Promise<{ skip: string | false }> {
  return await run(program, args).then(() => ({ skip: false as const }), () => ({ skip: `${program} is not installed` }))
}

async function pipe (program: string, args: string[], input: string): Promise<string> {
  const running = run(program, args, { maxBuffer: 10_000_000 })
  running.child.stdin!.end(input)
  return await running.then(({ stdout }) => stdout, ({ stderr }: { stderr: string }) => { throw new Error(stderr) })
}
