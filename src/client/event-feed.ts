import { createParser } from 'eventsource-parser'
import type { Event } from '../generated/client/openapi.ts'
import { ConnectionError } from './errors.ts'
import { checkNumber, checkObject, checkSignal } from './options.ts'
import { isTransient, pause, pauseAfter } from './retries.ts'
import { clearTimeout, createController, setTimeout, untilAborted } from './timers.ts'

export interface FollowOptions {
  /** The number of the last event that you know already. Default: the iteration begins with the oldest stored event. */
  after?: number | undefined
  /** Ends the iteration. */
  signal?: AbortSignal | undefined
}

export interface OpenedStream {
  body: ReadableStream<Uint8Array>
  /** The number of the newest event when the stream was opened. */
  newest: number | undefined
}

export interface StreamSource {
  /** Waits until the limits of the service allow a request. */
  untilAllowed: (signal: AbortSignal | undefined) => Promise<void>
  /** Opens the stream of events after a position. @throws {PetstoreError | ConnectionError} */
  open: (position: number | undefined, signal: AbortSignal) => Promise<OpenedStream>
}

/** One request for the stream. */
interface Connection {
  signal: AbortSignal
  /** Postpones the end of the connection, because bytes have arrived. */
  refresh: () => void
  close: () => void
}

/** The service sends something at least every 15 s. A connection that is silent for longer is broken. */
const SILENCE_MS = 45_000

/**
 * Iterates over the events of the store, in order. It resumes after the last event when the connection breaks, and ends
 * when the signal is aborted. It throws an error that another attempt would meet again, such as `events_expired`.
 */
export async function * followEvents (
  { untilAllowed, open }: StreamSource, options: FollowOptions = {}
): AsyncGenerator<Event, void, undefined> {
  checkObject('The options of followEvents', options)
  const { after, signal } = options
  if (after !== undefined) checkNumber('after', after, 0, Number.MAX_SAFE_INTEGER)
  checkSignal(signal)
  const isAborted = (): boolean => signal?.aborted === true
  let position = after
  let failures = 0
  while (!isAborted()) {
    await untilAllowed(signal).catch(() => {})
    if (isAborted()) return
    const connection = startConnection(signal)
    let failure: unknown
    try {
      const { body, newest } = await untilAborted(open(position, connection.signal), connection.signal)
      // The service begins with its newest event if the position is beyond it. A resumed stream must begin there, too.
      if (position !== undefined && newest !== undefined) position = Math.min(position, newest)
      for await (const event of readEvents(body, connection)) {
        position = event.id
        failures = 0
        yield event
        // More events can have arrived with this one.
        if (isAborted()) return
      }
    } catch (error) {
      if (!isAborted() && !isTransient(error)) throw error
      failure = error
    } finally {
      connection.close()
    }
    if (isAborted()) return
    await pause(pauseAfter(failure, failures++), signal).catch(() => {})
  }
}

/** Reads the events of one connection, until it ends or breaks. */
async function * readEvents (
  body: ReadableStream<Uint8Array>, connection: Connection
): AsyncGenerator<Event, void, undefined> {
  const events: Event[] = []
  const parser = createParser({ onEvent: ({ data }) => { events.push(JSON.parse(data) as Event) } })
  const reader = body.getReader()
  const decoder = new TextDecoder()
  connection.signal.addEventListener('abort', () => { reader.cancel().catch(() => {}) }, { once: true })
  for (;;) {
    // The follower resumes after every end, so the reason of this one does not matter.
    const { value } = await reader.read().catch(() => ({ value: undefined }))
    if (value === undefined) return
    connection.refresh()
    parser.feed(decoder.decode(value, { stream: true }))
    yield * events.splice(0)
  }
}

/** Returns a connection that closes when the signal is aborted, and when nothing has arrived for a while. */
function startConnection (signal: AbortSignal | undefined): Connection {
  const controller = createController()
  const abort = (): void => { controller.abort() }
  const breakOff = (): void => { controller.abort(new ConnectionError(`Nothing arrived for ${SILENCE_MS} ms`)) }
  signal?.addEventListener('abort', abort)
  let silence = setTimeout(breakOff, SILENCE_MS)
  return {
    signal: controller.signal,
    refresh () {
      clearTimeout(silence)
      silence = setTimeout(breakOff, SILENCE_MS)
    },
    close () {
      clearTimeout(silence)
      signal?.removeEventListener('abort', abort)
      abort()
    }
  }
}
