// Writes the table of operations for the client (src/client), and the OpenAPI document, which has its types.

import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'

export function writeOperations (program, folder) {
  // Operations that these settings turn off belong to the client all the same.
  const env = { PATH: process.env.PATH, LAB: 'true' }
  const { stdout, stderr, status } = spawnSync(process.execPath, [program, 'openapi'], { env, encoding: 'utf8' })
  if (status !== 0) throw new Error(`the OpenAPI document cannot be made: ${stderr}`)
  const document = JSON.parse(stdout)
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => describe(document, path, method, operation)))
  writeFileSync(`${folder}/operations.ts`, `export const operations = {\n${operations.join(',\n')}\n} as const\n`)
  writeFileSync(`${folder}/openapi.json`, JSON.stringify(document))
}

/** Returns an entry of the table with the facts of an operation: see OperationFacts in src/client/methods.ts. */
function describe (document, path, method, operation) {
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
    success: successOf(document, responses)
  }
  const comment = `${summary}.${deprecated === true ? ' @deprecated' : ''}`.replaceAll('*/', '')
  return `  /** ${comment} */\n  ${operationId}: ${JSON.stringify(facts)}`
}

/** Returns the status of success, whether its content is a list, and the fields that each record of it has. */
function successOf (document, responses) {
  const [[status, { content }], ...others] = Object.entries(responses).filter(([status]) => status.startsWith('2'))
  if (others.length > 0) throw new Error('the client expects one status of success')
  if (content === undefined) return { status: Number(status) }
  if (typeOf(content) !== undefined) return { status: Number(status), content: 'text' }
  const schema = resolve(document, content['application/json'].schema)
  const isList = schema.type === 'array'
  const { required = [] } = isList ? resolve(document, schema.items) : schema
  return { status: Number(status), content: isList ? 'list' : 'record', fields: required }
}

/** Returns the media type of content that is not JSON. */
function typeOf (content = {}) {
  return 'application/json' in content ? undefined : Object.keys(content)[0]
}

function resolve ({ components }, schema) {
  return schema.$ref === undefined ? schema : components.schemas[schema.$ref.split('/').at(-1)]
}
