import type { CallHandler } from '../plugins/siblings.ts'

/** The end of a channel between two processes: `process` in a worker, a `Worker` in the primary. */
interface Channel {
  send: (message: object, callback: (error: Error | null) => void) => unknown
  on: (event: 'message', listener: (message: unknown) => void) => unknown
  connected?: boolean
  isConnected?: () => boolean
}

export interface Calls {
  /** Calls the other process. Returns `undefined` if it has ended, or does not answer in time. */
  call: (topic: string, value?: unknown) => Promise<unknown>
  /** Sets what this process does when the other one calls. A call without a handler is answered at once. */
  onCall: (topic: string, handler: CallHandler) => void
}

/** Time for an answer: as long as processes on other machines take at most to see a change of the lab. */
const ANSWER_TIMEOUT_MS = 1_000

interface Message { petstore: 'call' | 'answer', id: number, topic?: string, value?: unknown }

/** Lets two processes call each other. */
export function createCalls (channel: Channel): Calls {
  const handlers = new Map<string, CallHandler>()
  const waiting = new Map<number, (value: unknown) => void>()
  let lastId = 0

  function isConnected (): boolean {
    return channel.connected ?? channel.isConnected?.() ?? false
  }

  function send (message: Message): void {
    // The other process may end at any time, and needs no message then.
    if (isConnected()) channel.send(message, () => {})
  }

  channel.on('message', (message) => {
    if (!isMessage(message)) return
    const { petstore, id, topic = '', value } = message
    if (petstore === 'answer') return waiting.get(id)?.(value)
    const handled = handlers.get(topic)?.(value) ?? Promise.resolve()
    handled.catch(() => {}).then((value) => { send({ petstore: 'answer', id, value }) }, () => {})
  })

  return {
    async call (topic, value) {
      if (!isConnected()) return undefined
      const id = ++lastId
      let timer: NodeJS.Timeout | undefined
      try {
        return await new Promise((resolve) => {
          waiting.set(id, resolve)
          timer = setTimeout(() => { resolve(undefined) }, ANSWER_TIMEOUT_MS)
          send({ petstore: 'call', id, topic, value })
        })
      } finally {
        clearTimeout(timer)
        waiting.delete(id)
      }
    },
    onCall (topic, handler) { handlers.set(topic, handler) }
  }
}

/** Other modules may use the channel, too. */
function isMessage (message: unknown): message is Message {
  return message instanceof Object && 'petstore' in message
}
