// Only on SQLite: starts services on SQLite.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { build, launch, ROOT } from './support/cli.ts'

t.before(build)

/** Uses a store in each way: writes, a retry with its pause, a time limit, the feed, webhooks and the end. */
const USE = `
  const { url, client, apiKey, close } = await createStore({ settings: { DELIVERY: true, LAB: true } })
  await client.createFault({ operation: 'createMessage', effect: { type: 'lose_answer' } })
  await client.createMessage({ message: 'Hello' }, { timeoutMs: 10000 })
  for await (const { type } of client.followEvents()) if (type === 'message.delivered') break
  await Promise.all(Array.from({ length: 20 }, async (_, i) => await client.createCategory({ name: 'Dogs ' + i })))
  const plain = createClient({ url, apiKey, retries: 0 })
  if ((await plain.listCategories()).length !== 20) throw new Error('no list')
  const stop = new AbortController()
  const waiting = client.followEvents({ after: 1000, signal: stop.signal }).next()
  stop.abort()
  if (!(await waiting).done) throw new Error('the signal did not end the feed')
`

/** Fake timers never fire, and the clock stands still in another year. */
const FAKE_TIMERS = `
  const real = { ...Object.fromEntries(['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'setImmediate',
    'clearImmediate', 'Date'].map((name) => [name, globalThis[name]])) }
  const timers = await import('node:timers')
  for (const name of ['setTimeout', 'setInterval', 'setImmediate']) {
    globalThis[name] = timers.default[name] = () => ({ ref () {}, unref () {}, hasRef: () => true })
  }
  globalThis.Date = class extends Date { static now () { return 0 } constructor (...args) { super(...args.length ? args : [0]) } }
  Object.defineProperty(globalThis, 'performance', {
    value: { now: () => 0, timeOrigin: 0, markResourceTiming () {} }, configurable: true
  })
`

/** jsdom has classes of its own, which Node does not take for its own. */
const JSDOM = `
  const real = Symbol('real')
  for (const name of ['URL', 'URLSearchParams', 'Headers', 'Event', 'EventTarget', 'Blob']) {
    const Real = globalThis[name]
    const Other = { [name]: class { constructor (...args) { this[real] = new Real(...args) } } }[name]
    for (const [key, { get, value }] of Object.entries(Object.getOwnPropertyDescriptors(Real.prototype))) {
      if (get !== undefined) Object.defineProperty(Other.prototype, key, { get () { return this[real][key] } })
      else if (key !== 'constructor' && typeof value === 'function') Other.prototype[key] = function (...args) { return value.apply(this[real], args) }
    }
    if (name === 'Headers') Other.prototype[Symbol.iterator] = function () { return this[real][Symbol.iterator]() }
    globalThis[name] = Other
  }
  URL.canParse = (...args) => { try { return Boolean(new URL(...args)) } catch { return false } }
  globalThis.AbortSignal = class AbortSignal {
    aborted = false
    listeners = new Set()
    addEventListener (_type, listener) { this.listeners.add(listener) }
    removeEventListener (_type, listener) { this.listeners.delete(listener) }
    throwIfAborted () { if (this.aborted) throw this.reason }
  }
  globalThis.AbortController = class AbortController {
    signal = new AbortSignal()
    abort (reason = new Error('aborted')) {
      Object.assign(this.signal, { aborted: true, reason })
      for (const listener of this.signal.listeners) listener()
    }
  }
  globalThis.document = {}
  globalThis.window = globalThis.self = globalThis
`

const LOAD = `
  const { createStore } = await import('petstore-lab')
  const { createClient } = await import('petstore-lab/client')
`

const CASES = {
  'fake timers after the package is loaded': LOAD + FAKE_TIMERS + USE + 'await close()',
  'fake timers that return before the end': LOAD + FAKE_TIMERS + USE + 'Object.assign(globalThis, real); await close()',
  'globals of jsdom before the package is loaded': JSDOM + LOAD + USE + 'await close()',
  'globals of jsdom after the package is loaded': LOAD + JSDOM + USE + 'await close()'
}

t.test('a store works in the process of a test that replaces globals', async (t) => {
  // Below the root, where Node resolves the name of the package.
  const folder = mkdtempSync(join(ROOT, 'test/.test-'))
  t.teardown(() => { rmSync(folder, { recursive: true, force: true }) })
  for (const [name, program] of Object.entries(CASES)) {
    const file = join(folder, 'program.mjs')
    // A server or a connection that is still open would keep the process from its end.
    writeFileSync(file, `${program}; console.log('done')`)
    const { code, out, err } = await launch(t, process.execPath, [file]).ended
    t.strictSame([code, out], [0, 'done\n'], `${name}: ${err}`)
  }
})
