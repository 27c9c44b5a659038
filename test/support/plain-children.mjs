// Loaded by tap before each test file (.taprc). tap loads a module for coverage into every Node process that a test
// starts. The module takes over the exit of the process, and a start takes twice as long. The tests are about the
// service as it is, and measure no coverage.

import asyncHooks from 'node:async_hooks'
import { syncBuiltinESMExports } from 'node:module'
import processOnSpawn from 'process-on-spawn'

processOnSpawn.removeAllListeners()
delete process.env.NODE_OPTIONS

// tap follows each promise and callback to the test that made it, so that an uncaught error fails that test. This takes
// 5 % of the CPU of the suite. Without it, such an error ends the process, which fails the test that runs.
const { createHook } = asyncHooks
asyncHooks.createHook = () => ({ enable () {}, disable () {} })
syncBuiltinESMExports()
await import('tap')
asyncHooks.createHook = createHook
syncBuiltinESMExports()
