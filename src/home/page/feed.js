import { ApiError, send } from './service.js'

/** Delay before reconnecting. It doubles after each failure, up to the maximum. */
const MIN_DELAY_MS = 500
const MAX_DELAY_MS = 30_000

/** Time without data after which a stream counts as broken. The service sends a comment every 15 s. */
const MAX_SILENCE_MS = 40_000

/**
 * @typedef {{ id: number, type: string, timestamp: string, data: Record<string, any> }} StoreEvent
 * @typedef {'live' | 'waiting'} FeedState
 */

/**
 * @template {{ id: number }} Item
 * @typedef {object} FeedOptions
 * @property {string} [path] of the stream: that of the events by default
 * @property {string} key
 * @property {number | undefined} after the id of the last item that the page has; without it, the stream begins now
 * @property {AbortSignal} signal
 * @property {(item: Item) => void} onEvent
 * @property {(state: FeedState) => void} onState
 */

/**
 * Follows the events of a store, or another stream. Reconnects after a failure and continues after the last item, so
 * that none is lost or repeated. Uses `fetch` because EventSource cannot send an API key.
 *
 * @template {{ id: number }} Item
 * @param {FeedOptions<Item>} options
 * @returns {Promise<void>} resolved after `signal` aborts
 * @throws {ApiError} if a retry cannot succeed
 */
export async function follow ({ path = 'events', key, after, signal, onEvent, onState }) {
  let last = after
  let delay = MIN_DELAY_MS
  while (!signal.aborted) {
    const startedAt = performance.now()
    try {
      await readStream()
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof ApiError && error.status < 500 && ![408, 429].includes(error.status)) throw error
    }
    if (signal.aborted) return
    // Only a stream that lasted resets the delay: a service that ends every stream at once must not be overloaded.
    if (performance.now() - startedAt > MAX_DELAY_MS) delay = MIN_DELAY_MS
    onState('waiting')
    await wait(delay * (0.5 + Math.random() / 2), signal)
    delay = Math.min(delay * 2, MAX_DELAY_MS)
  }

  async function readStream () {
    const silence = new AbortController()
    const stop = () => { silence.abort() }
    let timer = setTimeout(stop, MAX_SILENCE_MS)
    signal.addEventListener('abort', stop)
    try {
      const position = last === undefined ? undefined : { 'Last-Event-ID': String(last) }
      const headers = { Accept: 'text/event-stream', ...position }
      const { body } = await send('GET', path, { key, headers, signal: silence.signal })
      if (body === null) return
      onState('live')
      const reader = body.pipeThrough(new TextDecoderStream()).getReader()
      let text = ''
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return
        clearTimeout(timer)
        timer = setTimeout(stop, MAX_SILENCE_MS)
        const blocks = (text + value).split('\n\n')
        text = blocks.pop() ?? ''
        for (const block of blocks) handleBlock(block)
      }
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', stop)
    }
  }

  function handleBlock (/** @type {string} */ block) {
    // Not `.*`: JSON has line separators that end no line of the stream, such as U+2028.
    const data = /^data: ([^\n]*)/m.exec(block)?.[1]
    if (data === undefined) return
    const item = /** @type {Item} */ (JSON.parse(data))
    last = item.id
    delay = MIN_DELAY_MS
    onEvent(item)
  }
}

/** Waits for a time. Ends early if the machine is online again or the signal aborts. */
function wait (/** @type {number} */ ms, /** @type {AbortSignal} */ signal) {
  return /** @type {Promise<void>} */ (new Promise((resolve) => {
    const timer = setTimeout(end, ms)
    addEventListener('online', end)
    signal.addEventListener('abort', end)
    function end () {
      clearTimeout(timer)
      removeEventListener('online', end)
      signal.removeEventListener('abort', end)
      resolve()
    }
  }))
}
