// Writes the table of operations for the client (src/client), and the OpenAPI document, which has its types.

import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'

export function writeOperations (program, folder) {
  // Operations that these settings turn off belong to the client all the same.
  const env = { PATH: process.env.PATH, LAB: 'true' }
  const { stdout, stderr, status } = spawnSync(process.execPath, [program, 'openapi'], { env, encoding: 'utf8' })
  if (status !== 0) throw new Error(`the OpenAPI document cannot be made: ${stderr}`)
  const document = JSON.parse(stdout)
  const records = {}
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => describe(document, path, method, operation, records)))
  writeFileSync(`${folder}/operations.ts`, `export const operations = {\n${operations.join(',\n')}\n} as const

export const records = {\n${Object.entries(records).map(([name, facts]) => `  ${name}: ${JSON.stringify(facts)}`).join(',\n')}\n}\n`)
  writeFileSync(`${folder}/openapi.json`, JSON.stringify(document))
}

/** Returns an entry of the table with the facts of an operation: see OperationFacts in src/client/methods.ts. */
function describe (document, path, method, operation, records) {
  const { operationId, summary, deprecated, parameters = [], requestBody, responses } = operation
  const all = parameters.map(({ $ref, ...parameter }) =>
    $ref === undefined ? parameter : document.components.parameters[$ref.split('/').at(-1)])
  const ids = all.filter((parameter) => parameter.in === 'path').map(({ name }) => name)
  const hasQuery = all.some((parameter) => parameter.in === 'query')
  const facts = {
    method,
    path,
    ids: ids.length === 0 ? undefined : ids,
    sends: hasQuery ? 'query' : requestBody === undefined ? undefined : 'body',
    bodyType: typeOf(requestBody?.content),
    isKeyed: all.some((parameter) => parameter.in === 'header' && parameter.name === 'Idempotency-Key') || undefined,
    success: successOf(document, responses, records)
  }
  const comment = `${summary}.${deprecated === true ? ' @deprecated' : ''}`.replaceAll('*/', '')
  return `  /** ${comment} */\n  ${operationId}: ${JSON.stringify(facts)}`
}

/** Returns the status of success, and whether its content is a list. Adds the schema of its records to the others. */
function successOf (document, responses, records) {
  const [[status, { content }], ...others] = Object.entries(responses).filter(([status]) => status.startsWith('2'))
  if (others.length > 0) throw new Error('the client expects one status of success')
  if (content === undefined) return { status: Number(status) }
  if (typeOf(content) !== undefined) return { status: Number(status), content: 'text' }
  const schema = resolve(document, content['application/json'].schema)
  const isList = schema.type === 'array'
  const record = nameOf(isList ? schema.items : content['application/json'].schema)
  const { required = [], properties = {} } = document.components.schemas[record]
  const types = Object.entries(properties).map(([name, property]) => [name, resolve(document, property).type])
  records[record] = { required, types: Object.fromEntries(types) }
  return { status: Number(status), content: isList ? 'list' : 'record', record }
}

/** Returns the media type of content that is not JSON. */
function typeOf (content = {}) {
  return 'application/json' in content ? undefined : Object.keys(content)[0]
}

function resolve ({ components }, schema) {
  return schema.$ref === undefined ? schema : components.schemas[nameOf(schema)]
}

function nameOf ({ $ref }) {
  return $ref.split('/').at(-1)
}
