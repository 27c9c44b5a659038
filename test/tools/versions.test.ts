import { writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { run, type RunFileResult } from '@redocly/respect-core'
import { Ajv } from 'ajv'
import t from 'tap'
import { parse } from 'yaml'
import { startApp } from '../support/app.ts'
import { folder } from '../support/cli.ts'

const require = createRequire(import.meta.url)

t.test('the documents beside OpenAPI 3.0.3', async (t) => {
  const service = await startApp(t)
  const { nobody, port } = service
  const read = async (path: string): Promise<any> => (await nobody.get(path)).body
  const base = await read('/openapi.json')

  await t.test('each is valid by its standard', async (t) => {
    for (const path of ['openapi.json', 'openapi-3.1.json', 'openapi-3.2.json', 'arazzo.json', 'asyncapi.json']) {
      const { text } = await nobody.get(`/${path}`)
      const config = await createConfig({ extends: ['recommended'] })
      const problems = await lintFromString({ source: text, absoluteRef: path, config })
      t.same(problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} (${location[0]?.pointer})`), [], path)
    }
    const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false })
    const validate = ajv.compile(require('@asyncapi/specs/schemas/3.0.0-without-$id.json') as object)
    t.ok(validate(await read('/asyncapi.json')), ajv.errorsText(validate.errors).slice(0, 1_000))
  })

  await t.test('OpenAPI 3.1 has the same operations, in the words of JSON Schema', async (t) => {
    const document = await read('/openapi-3.1.json')
    t.match(document.openapi, /^3\.1\./)
    t.same(idsOf(document.paths), idsOf(base.paths))
    const { schemas } = document.components
    t.same(schemas.CategoryUpdate.properties.description.type, ['string', 'null'])
    t.equal(schemas.PetCreatedEvent.properties.type.const, 'pet.created')
    t.same(schemas.Pet.properties.name.examples, ['Felix'])
    t.notMatch(JSON.stringify(schemas), /"(nullable|example)":/)
    t.same(Object.keys(document.paths['/pets/{petId}'].patch.requestBody.content),
      ['application/json', 'application/merge-patch+json'])
  })

  await t.test('OpenAPI 3.1 describes each event as the request that a webhook receives', async (t) => {
    const { webhooks, components } = await read('/openapi-3.1.json')
    t.same(Object.keys(webhooks), [...base.components.schemas.EventType.enum, 'webhook.test'])
    for (const [type, { post }] of Object.entries<any>(webhooks)) {
      const names = post.parameters.map((reference: { $ref: string }) => components.parameters[nameOf(reference)].name)
      t.same(names, ['webhook-id', 'webhook-timestamp', 'webhook-signature'])
      t.equal(post.requestBody.content['application/json'].example.type, type)
    }
  })

  await t.test('OpenAPI 3.1 and 3.2 name the codes of each error response', async (t) => {
    for (const path of ['/openapi-3.1.json', '/openapi-3.2.json']) {
      const document = await read(path)
      for (const methods of Object.values<any>(document.paths)) {
        for (const { operationId, responses } of Object.values<any>(methods)) {
          const failures = Object.entries<any>(responses).filter(([status]) => Number(status) >= 400)
          const codes = failures.flatMap(([, answer]) => {
            const { content } = answer.$ref === undefined ? answer : document.components.responses[nameOf(answer)]
            const { code } = content['application/json'].schema.allOf[1].properties
            return code.enum ?? [code.const]
          })
          t.same([...new Set(codes)], operationOf(base, operationId)['x-error-codes'], `${operationId} of ${path}`)
        }
      }
    }
  })

  await t.test('OpenAPI 3.2 has nested tags, and a type for each message of the stream', async (t) => {
    const document = await read('/openapi-3.2.json')
    t.match(document.openapi, /^3\.2\./)
    t.equal(document['x-tagGroups'], undefined)
    t.same(document.tags.filter(({ parent }: { parent?: string }) => parent === undefined)
      .map(({ name }: { name: string }) => name), ['Pets', 'Store', 'Platform'])
    t.match(document.tags.find(({ name }: { name: string }) => name === 'orders'), { parent: 'Store', kind: 'nav' })
    const { content } = document.paths['/events'].get.responses['200']
    t.same(content['text/event-stream'], { itemSchema: { $ref: '#/components/schemas/EventStreamMessage' } })
    t.match(document.components.schemas.EventStreamMessage.properties.data.contentSchema, { $ref: /Event$/ })
  })

  await t.test('AsyncAPI describes every type of event', async (t) => {
    const { channels, servers } = await read('/asyncapi.json')
    t.match(servers.service, { host: `127.0.0.1:${port}`, protocol: 'http' })
    t.equal(Object.keys(channels.events.messages).length, base.components.schemas.EventType.enum.length)
    t.ok(channels.webhook.messages.WebhookTestEvent)
  })

  await t.test('YAML says the same, and the catalog lists them all', async (t) => {
    for (const version of ['3.1', '3.2']) {
      t.same(parse((await nobody.get(`/openapi-${version}.yaml`)).text), await read(`/openapi-${version}.json`))
    }
    const { linkset: [{ 'service-desc': listed }] } = await read('/.well-known/api-catalog')
    t.same(listed.map(({ href }: { href: string }) => href), [
      '/openapi.json', '/openapi.yaml', '/openapi-3.1.json', '/openapi-3.1.yaml', '/openapi-3.2.json',
      '/openapi-3.2.yaml', '/arazzo.json', '/asyncapi.json'
    ])
  })

  await t.test('the workflows of Arazzo run', async (t) => {
    const { text } = await nobody.get('/arazzo.json')
    const { executedWorkflows, hasProblems, log } = await runWorkflows(join(folder(t), 'arazzo.json'), text)
    t.same(executedWorkflows.map(({ workflowId }) => workflowId), ['quickstart', 'order', 'retry', 'mirror', 'pages'])
    t.notOk(hasProblems, log)

    const wrong = text.replace('#/quantity == 1', '#/quantity == 2')
    t.ok((await runWorkflows(join(folder(t), 'wrong.json'), wrong)).hasProblems, 'a wrong criterion is noticed')
  })
})

/** Executes the workflows of an Arazzo document. */
async function runWorkflows (file: string, text: string): Promise<RunFileResult & { log: string }> {
  writeFileSync(file, text)
  const lines: string[] = []
  const write = (line: string): void => { lines.push(line) }
  const [result] = await run({
    files: [file],
    config: await createConfig({ extends: ['recommended'] }) as never,
    maxSteps: 200,
    maxFetchTimeout: 10_000,
    requestFileLoader: { getFileBody: async () => new Blob([]) },
    logger: {
      info: write,
      warn: write,
      error: write,
      output: write,
      printNewLine () {},
      printSeparator () {},
      indent: (text: string) => text
    },
    fetch
  })
  return { ...result!, log: lines.join('').slice(-3_000) }
}

function idsOf (paths: Record<string, Record<string, { operationId: string }>>): string[] {
  return Object.values(paths).flatMap((methods) => Object.values(methods)).map(({ operationId }) => operationId)
}

function operationOf ({ paths }: any, operationId: string): any {
  return Object.values<any>(paths).flatMap((methods) => Object.values<any>(methods))
    .find((operation) => operation.operationId === operationId)
}

function nameOf ({ $ref }: { $ref: string }): string {
  return $ref.split('/').at(-1)!
}
