// Writes what the client of the package (src/client) takes from the OpenAPI document.

import { existsSync, mkdirSync } from 'node:fs'
import { filesBelow, fingerprint, read, runNode, stampOf, writeStamp } from './files.mjs'

const OUTPUT = 'src/generated/client'

const GENERATOR = 'scripts/generate-client.mjs'

/**
 * Writes the table of operations for the client of the package. It comes from the OpenAPI document, which the service
 * builds when it starts.
 */
export function describeOperations () {
  const sources = filesBelow('src').filter((file) => !/^src.(client|generated.client)\b/.test(file))
  const stamp = fingerprint([...sources, GENERATOR, 'package-lock.json'])
  if (existsSync(`${OUTPUT}/operations.ts`) && stampOf(OUTPUT) === stamp) return

  console.error('Reading the operations for the client …')
  mkdirSync(OUTPUT, { recursive: true })
  runNode('The client', [GENERATOR, 'operations'])
  writeStamp(OUTPUT, stamp)
}

/** Writes the types of the client. Compiling the client does not need them. */
export function describeTypes () {
  const [document, output] = [`${OUTPUT}/openapi.json`, `${OUTPUT}/openapi.ts`]
  const stamp = fingerprint([document, GENERATOR, 'test/node_modules/openapi-typescript/package.json'])
  if (existsSync(output) && read(output).includes(stamp)) return

  console.error('Writing the types of the client …')
  runNode('openapi-typescript', [GENERATOR, 'types', stamp])
}
