import { byId, make, whenAsked, write } from './dom.js'
import { newIdempotencyKey, send, Unreachable } from './service.js'

/** @import { StoreEvent } from './feed.js' */
/** @typedef {{ id: string, message: string, status: string, createdAt: string }} Message */

/** So many messages are shown. */
const SHOWN = 5

/** A message that is not settled after so long waits for a webhook, or for a process that delivers, in ms. */
const LONG_MS = 5_000

/**
 * Step 2: sends messages and shows how far each came.
 *
 * @param {() => string | undefined} keyOf
 */
export function setUpMessages (keyOf) {
  const form = byId('message-form', HTMLFormElement)
  const field = byId('message-text', HTMLInputElement)
  const list = byId('messages')
  /** Events may come before the answer that tells the id. @type {Map<string, StoreEvent>} */
  const settled = new Map()
  /** @type {Map<string, { message: Message, item: HTMLElement }>} */
  const shown = new Map()
  let idempotencyKey = newIdempotencyKey()

  // Another text is another request.
  field.addEventListener('input', () => { idempotencyKey = newIdempotencyKey() })

  whenAsked(form, 'message-error', async () => {
    try {
      const headers = { 'Idempotency-Key': idempotencyKey }
      const answer = await send('POST', 'messages', { key: keyOf(), body: { message: field.value }, headers })
      idempotencyKey = newIdempotencyKey()
      add(await answer.json())
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error
      throw new Error(`${error.message} Send it again: under its Idempotency-Key it is taken once, even if it has arrived already.`)
    }
  })

  function add (/** @type {Message} */ message) {
    const item = make('li', { 'data-status': 'queued' },
      make('q', {}, message.message),
      make('span', { class: 'track', 'aria-hidden': 'true' }, make('i'), make('i')),
      make('span', { class: 'how' }, 'queued'))
    list.prepend(item)
    shown.set(message.id, { message, item })
    while (list.children.length > SHOWN) list.lastElementChild?.remove()
    write('message-status', 'The message is queued.')
    // Seen as queued before it moves on, however fast the service was.
    requestAnimationFrame(() => requestAnimationFrame(() => { settle(message.id) }))
    setTimeout(() => {
      if (item.dataset['status'] === 'queued') how(item, 'still on its way: a webhook has not answered, or no process delivers')
    }, LONG_MS)
  }

  function settle (/** @type {string} */ id) {
    const event = settled.get(id)
    const entry = shown.get(id)
    if (event === undefined || entry === undefined) return
    const { status } = event.data['message']
    const ms = Date.parse(event.timestamp) - Date.parse(entry.message.createdAt)
    entry.item.dataset['status'] = status
    how(entry.item, `${status} after ${ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`}`)
    write('message-status', `The message is ${status}.`)
    settled.delete(id)
    shown.delete(id)
  }

  return {
    /** @param {StoreEvent} event */
    take (event) {
      if (event.type !== 'message.delivered' && event.type !== 'message.failed') return
      const { id } = event.data['message']
      settled.set(id, event)
      // Those of other clients are never shown here.
      if (settled.size > 100) settled.delete(/** @type {string} */ (settled.keys().next().value))
      settle(id)
    },
    clear () {
      list.replaceChildren()
      settled.clear()
      shown.clear()
      write('message-status', '')
    }
  }
}

function how (/** @type {HTMLElement} */ item, /** @type {string} */ text) {
  const place = item.querySelector('.how')
  if (place !== null) place.textContent = text
}
