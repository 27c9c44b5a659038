// Sets up tap, the library of the tests.

import { existsSync } from 'node:fs'
import { fingerprint, runNode, stampOf, writeStamp } from './files.mjs'

const MODULES = 'test/node_modules'
const COMPILED = `${MODULES}/@tapjs/test/test-built`

/** Compiles tap's class from the plugins that the .taprc names. */
export function setUpTap () {
  const stamp = fingerprint(['.taprc', `${MODULES}/tap/package.json`, `${MODULES}/@tapjs/test/package.json`])
  if (existsSync(`${COMPILED}/dist/esm/index.js`) && stampOf(COMPILED) === stamp) return

  console.error('Setting up the test runner …')
  runNode('tap build', ['node_modules/tap/dist/esm/run.mjs', 'build'], {
    cwd: 'test', env: { ...process.env, TAP_RCFILE: '../.taprc' }
  })
  writeStamp(COMPILED, stamp)
}
