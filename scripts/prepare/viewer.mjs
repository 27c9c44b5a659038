// Copies the viewer of the OpenAPI document out of its package.

import { cpSync } from 'node:fs'
import { fingerprint, stampOf, writeStamp } from './files.mjs'

const PACKAGE = 'node_modules/@scalar/fastify-api-reference'
const OUTPUT = 'src/generated/viewer'

/**
 * The package contains a build of the viewer as one file without imports. The service serves the copy, so that an
 * installation of the service needs none of the 19 packages around it.
 */
export function copyViewer () {
  const stamp = fingerprint([`${PACKAGE}/package.json`])
  if (stampOf(OUTPUT) === stamp) return
  cpSync(`${PACKAGE}/dist/js/standalone.js`, `${OUTPUT}/standalone.js`)
  cpSync(`${PACKAGE}/LICENSE`, `${OUTPUT}/LICENSE`)
  writeStamp(OUTPUT, stamp)
}
