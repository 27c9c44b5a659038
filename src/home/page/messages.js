import { byId, make, onAction, write } from './dom.js'
import { showRequest } from './requests.js'
import { newIdempotencyKey, readList, send, Unreachable } from './service.js'

/** @import { StoreEvent } from './feed.js' */
/** @typedef {{ id: string, message: string, status: string, createdAt: string }} Message */

/** Maximum number of messages in the list. */
const MAX_MESSAGES = 5

/** Time after which a message that is still queued waits for a webhook, or for a process that delivers. */
const SLOW_MS = 5_000

/**
 * Sets up step 2: sends messages and shows their statuses.
 *
 * @param {() => string | undefined} keyOf
 */
export function setUpMessages (keyOf) {
  const form = byId('message-form', HTMLFormElement)
  const field = byId('message-text', HTMLInputElement)
  const list = byId('messages')
  /** Final events. One may arrive before the response with the id of its message. @type {Map<string, StoreEvent>} */
  const finalEvents = new Map()
  /** @type {Map<string, { message: Message, item: HTMLElement }>} */
  const shown = new Map()
  let idempotencyKey = newIdempotencyKey()
  const renewKey = () => {
    idempotencyKey = newIdempotencyKey()
    if (keyOf() !== undefined) showRequest('message', { idempotencyKey })
  }

  // A different text is a different request.
  field.addEventListener('input', () => {
    renewKey()
    write('message-error', '')
  })

  onAction(form, 'message-error', async () => {
    try {
      const headers = { 'Idempotency-Key': idempotencyKey }
      const key = keyOf()
      const response = await send('POST', 'messages', { key, body: { message: field.value }, headers })
      const message = await response.json()
      // Meanwhile, the user may have entered another store.
      if (key !== keyOf()) return
      renewKey()
      add(message)
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error
      const hint = 'Send the message again: its Idempotency-Key ensures that it is created only once.'
      throw new Error(`${error.message} ${hint}`)
    }
  })

  function add (/** @type {Message} */ message) {
    const item = make('li', { 'data-status': 'queued' },
      make('q', {}, message.message),
      make('span', { class: 'track', 'aria-hidden': 'true' }, make('i'), make('i')),
      make('span', { class: 'how' }, 'queued'))
    list.prepend(item)
    shown.set(message.id, { message, item })
    while (list.children.length > MAX_MESSAGES) list.lastElementChild?.remove()
    write('message-status', 'The message is queued.')
    // Shows the status `queued` for at least one frame, however fast the service is.
    requestAnimationFrame(() => requestAnimationFrame(() => { showFinalStatus(message.id) }))
    setTimeout(() => {
      if (item.dataset['status'] !== 'queued') return
      setStatusText(item, 'still queued: a webhook has not responded, or no process delivers')
    }, SLOW_MS)
  }

  function showFinalStatus (/** @type {string} */ id) {
    const event = finalEvents.get(id)
    const entry = shown.get(id)
    if (event === undefined || entry === undefined) return
    const { status } = event.data['message']
    const ms = Date.parse(event.timestamp) - Date.parse(entry.message.createdAt)
    entry.item.dataset['status'] = status
    setStatusText(entry.item, `${status} after ${ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`}`)
    write('message-status', `The message is ${status}.`)
    finalEvents.delete(id)
    shown.delete(id)
    if (status === 'delivered') explainDelivery(entry.item).catch(() => { /* The text says less. */ })
  }

  /** Says so if the store has no webhook that receives messages: nobody got this one. */
  async function explainDelivery (/** @type {HTMLElement} */ item) {
    const key = keyOf()
    if (key === undefined) return
    const { records, complete } = await readList('webhooks', {}, key, 1, AbortSignal.timeout(SLOW_MS))
    const isSubscribed = ({ enabled = false, events = [''] }) => enabled && events.includes('message.created')
    if (!complete || records.some(isSubscribed)) return
    setStatusText(item, `${item.querySelector('.how')?.textContent}: no webhook had to accept it`)
  }

  return {
    open (/** @type {boolean} */ mayWrite) {
      if (mayWrite) renewKey()
      else showRequest('message', undefined)
    },
    /** @param {StoreEvent} event */
    handle (event) {
      if (event.type !== 'message.delivered' && event.type !== 'message.failed') return
      const { id } = event.data['message']
      finalEvents.set(id, event)
      // Messages of other clients are never shown, so their events would accumulate.
      if (finalEvents.size > 100) finalEvents.delete(/** @type {string} */ (finalEvents.keys().next().value))
      showFinalStatus(id)
    },
    clear () {
      list.replaceChildren()
      showRequest('message', undefined)
      finalEvents.clear()
      shown.clear()
      for (const id of ['message-status', 'message-error']) write(id, '')
    }
  }
}

function setStatusText (/** @type {HTMLElement} */ item, /** @type {string} */ text) {
  const element = item.querySelector('.how')
  if (element !== null) element.textContent = text
}
