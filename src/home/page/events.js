import { byId, make, write } from './dom.js'
import { post, readList } from './service.js'
import { describeEvent } from './store.js'

/** @import { Store } from './store.js' */

/** Time after which the page gives up the list of webhooks. */
const TIMEOUT_MS = 10_000

/**
 * Sets up the list of events, each of which the user can send to the webhooks again.
 *
 * @param {() => string | undefined} keyOf
 * @param {() => void} redraw
 */
export function setUpEvents (keyOf, redraw) {
  /** What came of sending events to the webhooks. @type {Map<number, { text: string, isError: boolean }>} */
  const results = new Map()
  /** The events that the page is sending. @type {Set<number>} */
  const sending = new Set()
  const list = byId('events')

  list.addEventListener('click', async ({ target }) => {
    const id = Number(target instanceof HTMLElement ? target.dataset['event'] : undefined)
    const key = keyOf()
    if (key === undefined || Number.isNaN(id) || sending.has(id)) return
    sending.add(id)
    results.delete(id)
    redraw()
    const result = await sendToWebhooks(id, key)
      .then((text) => ({ text, isError: false }), ({ message }) => ({ text: message, isError: true }))
    if (key !== keyOf()) return
    sending.delete(id)
    results.set(id, result)
    write('resend-status', `Event ${id}: ${result.text}`)
    redraw()
  })

  function itemOf (/** @type {Store} */ store, /** @type {Store['events'][number]} */ event, mayWrite = false) {
    const { id, timestamp, type } = event
    const result = results.get(id)
    return make('li', {},
      make('time', { datetime: timestamp }, new Date(timestamp).toLocaleTimeString('en-GB')),
      ' ', make('span', {}, describeEvent(store, event)),
      ' ', make('div', {},
        make('code', {}, type),
        ...mayWrite ? [' ', resendButton(id, sending.has(id))] : [],
        ...result === undefined
          ? []
          : [' ', make('span', { class: result.isError ? 'error' : 'result' }, result.text)]))
  }

  return {
    /** @param {Store} store @param {number} limit @param {boolean} mayWrite */
    show (store, limit, mayWrite) {
      const { activeElement } = document
      const focused = activeElement instanceof HTMLElement ? activeElement.dataset['event'] : undefined
      const items = store.events.slice(0, limit).map((event) => itemOf(store, event, mayWrite))
      list.replaceChildren(...items.length === 0 ? [emptyItem()] : items)
      const again = list.querySelector(`[data-event="${Number(focused)}"]`)
      if (again instanceof HTMLElement) again.focus()
    },
    clear () {
      results.clear()
      sending.clear()
      write('resend-status', '')
      list.replaceChildren(emptyItem())
    }
  }
}

/** Sends an event to all webhooks that receive events. Reads them now: no event says that a webhook has changed. */
async function sendToWebhooks (/** @type {number} */ eventId, /** @type {string} */ key) {
  const { records } = await readList('webhooks', {}, key, 1, AbortSignal.timeout(TIMEOUT_MS))
  const webhooks = records.filter(({ enabled }) => enabled)
  if (webhooks.length === 0) throw new Error('Your store has no enabled webhook. POST /webhooks creates one.')
  const answers = await Promise.all(webhooks.map(({ id }) => post(`webhooks/${id}/resend`, key, { eventId })))
  const queued = answers.reduce((sum, answer) => sum + answer.queued, 0)
  return `Queued for ${queued} of ${webhooks.length} webhooks.`
}

/** Not `disabled` while the page sends: the focus would be lost. */
function resendButton (/** @type {number} */ eventId, isSending = false) {
  return make('button', {
    type: 'button', class: 'resend', 'data-event': String(eventId), ...isSending && { 'aria-disabled': 'true' }
  }, isSending ? 'Resending' : 'Resend', make('span', { class: 'unseen' }, ` event ${eventId} to webhooks`))
}

function emptyItem () {
  return make('li', { class: 'hint' }, 'No events yet.')
}
