import { request, type IncomingMessage } from 'node:http'
import { once } from 'node:events'
import type { Client, TestApp } from './app.ts'
import { WAIT_MS } from './receiver.ts'

export interface StreamedEvent {
  id: number
  type: string
  // Tests read members of events of every shape.
  data: any
}

export interface Stream {
  status: number
  headers: IncomingMessage['headers']
  events: StreamedEvent[]
  /** The times at which comments arrived, in ms. */
  comments: number[]
  /** Waits until that many events have arrived. Fails after `ms`, and when the stream closes before. */
  until: (count: number, ms?: number) => Promise<void>
  /** Settles when the service ends the stream. */
  ended: Promise<void>
  pause: () => void
  resume: () => void
  close: () => void
}

export interface StreamOptions { path?: string, headers?: Record<string, string> }

/** Opens the text/event-stream of a client's account. */
export async function openStream (
  { port }: Pick<TestApp, 'port'>, { key }: Pick<Client, 'key'>, { path = '/events', headers = {} }: StreamOptions = {}
): Promise<Stream> {
  const fields = { authorization: `Bearer ${key}`, accept: 'text/event-stream', ...headers }
  const asked = request({ host: '127.0.0.1', port, path, agent: false, headers: fields })
  asked.on('error', () => {})
  asked.end()
  const [response] = await once(asked, 'response') as [IncomingMessage]
  const events: StreamedEvent[] = []
  const comments: number[] = []
  let rest = ''
  let block = new Map<string, string>()
  let changed = (): void => {}
  response.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const colon = line.indexOf(':')
      if (colon === 0) {
        comments.push(Date.now())
      } else if (line !== '') {
        block.set(line.slice(0, colon), line.slice(colon + 2))
      } else {
        // Some clients report an empty line without fields before it as an empty message.
        const { id, type, data } = JSON.parse(block.get('data') ?? 'null') ?? {}
        if (id === undefined || block.get('id') !== String(id) || block.get('event') !== type) {
          throw new Error(`the fields of the event disagree: ${JSON.stringify([...block])}`)
        }
        events.push({ id, type, data })
        block = new Map()
      }
    }
    changed()
  })
  const ended = new Promise<void>((resolve) => { response.on('close', resolve).on('error', () => {}) })
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    events,
    comments,
    ended,
    async until (count, ms = WAIT_MS) {
      const deadline = Date.now() + ms
      while (events.length < count) {
        const problem = response.closed ? 'the stream closed' : Date.now() > deadline ? `${ms} ms passed` : undefined
        if (problem !== undefined) throw new Error(`only ${events.length} of ${count} events came before ${problem}`)
        await new Promise<void>((resolve) => {
          changed = resolve
          setTimeout(resolve, 50)
        })
      }
    },
    pause: () => { response.pause() },
    resume: () => { response.resume() },
    close: () => { asked.destroy() }
  }
}
