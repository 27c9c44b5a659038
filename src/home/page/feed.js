import { Refusal, send } from './service.js'

/** The pause before a broken stream is resumed; it doubles up to the longest, in ms. */
const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 30_000

/** The service sends a comment every 15 s; a stream that is silent for longer is dead, in ms. */
const SILENCE_MS = 40_000

/**
 * @typedef {{ id: number, type: string, timestamp: string, data: Record<string, any> }} StoreEvent
 * @typedef {'live' | 'waiting'} FeedState
 */

/**
 * Follows the events of a store, and resumes after each break where it was: nothing is lost or comes
 * twice. By `fetch`, because EventSource cannot send a key.
 *
 * @param {{ key: string, after: number, signal: AbortSignal, onEvent: (event: StoreEvent) => void, onState: (state: FeedState) => void }} options
 * @returns {Promise<void>} when `signal` ends it
 * @throws {Refusal} that no repetition would change
 */
export async function follow ({ key, after, signal, onEvent, onState }) {
  let last = after
  let pause = FIRST_PAUSE_MS
  while (!signal.aborted) {
    const began = Date.now()
    try {
      await stream()
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof Refusal && error.status < 500 && ![408, 429].includes(error.status)) throw error
    }
    if (signal.aborted) return
    // A service that breaks every stream at once is left alone for longer and longer.
    if (Date.now() - began > LONGEST_PAUSE_MS) pause = FIRST_PAUSE_MS
    onState('waiting')
    await rest(pause * (0.5 + Math.random() / 2), signal)
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS)
  }

  async function stream () {
    const silence = new AbortController()
    const stop = () => { silence.abort() }
    let timer = setTimeout(stop, SILENCE_MS)
    signal.addEventListener('abort', stop)
    try {
      const headers = { Accept: 'text/event-stream', 'Last-Event-ID': String(last) }
      const { body } = await send('GET', 'events', { key, headers, signal: silence.signal })
      if (body === null) return
      onState('live')
      const reader = body.pipeThrough(new TextDecoderStream()).getReader()
      let text = ''
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return
        clearTimeout(timer)
        timer = setTimeout(stop, SILENCE_MS)
        const blocks = (text + value).split('\n\n')
        text = blocks.pop() ?? ''
        for (const block of blocks) take(block)
      }
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', stop)
    }
  }

  function take (/** @type {string} */ block) {
    const data = /^data: (.*)$/m.exec(block)?.[1]
    if (data === undefined) return
    const event = /** @type {StoreEvent} */ (JSON.parse(data))
    last = event.id
    pause = FIRST_PAUSE_MS
    onEvent(event)
  }
}

/** Waits, but not longer than until the machine is on a network again. */
function rest (/** @type {number} */ ms, /** @type {AbortSignal} */ signal) {
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
