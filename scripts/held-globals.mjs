// What the bundled service uses in place of the globals of these names. A test that runs the service in its own process
// can replace the globals, before or after it loads the package.

import { transferableAbortController } from 'node:util'

export { performance } from 'node:perf_hooks'
export { clearImmediate, clearInterval, clearTimeout, setImmediate, setInterval, setTimeout } from 'node:timers'
export { URL, URLSearchParams } from 'node:url'
export { TextDecoder, TextEncoder } from 'node:util'

const { Date: RealDate } = globalThis
// No module of Node exports these two classes.
const controller = transferableAbortController()
const { constructor: AbortController, signal: { constructor: AbortSignal } } = controller
export { AbortController, AbortSignal, RealDate as Date }
