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
function describe (document, path, method, { operationId, summary, deprecated, parameters = [], requestBody }) {
  const all = parameters.map(({ $ref, ...parameter }) =>
    $ref === undefined ? parameter : document.components.parameters[$ref.split('/').at(-1)])
  const ids = all.filter((parameter) => parameter.in === 'path').map(({ name }) => name)
  const hasQuery = all.some((parameter) => parameter.in === 'query')
  const facts = {
    method,
    path,
    id: ids[0],
    sends: hasQuery ? 'query' : requestBody === undefined ? undefined : 'body',
    isKeyed: all.some((parameter) => parameter.in === 'header' && parameter.name === 'Idempotency-Key') || undefined
  }
  const comment = `${summary}.${deprecated === true ? ' @deprecated' : ''}`.replaceAll('*/', '')
  return `  /** ${comment} */\n  ${operationId}: ${JSON.stringify(facts)}`
}
