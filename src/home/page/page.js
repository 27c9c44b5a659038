import { setUpAccount } from './account.js'
import { byId, write } from './dom.js'
import { follow } from './feed.js'
import { setUpGlance } from './glance.js'
import { setUpMessages } from './messages.js'
import { offerRequests, showRequest } from './requests.js'
import { ApiError } from './service.js'
import { apply, readStore } from './store.js'

/** @import { StoreEvent } from './feed.js' */

/** Delay before the page reads the store again after an error. */
const RETRY_DELAY_MS = 5_000

/** Aborts the requests for the current store. @type {AbortController | undefined} */
let session

const keyOf = () => account.keyOf()
const messages = setUpMessages(keyOf)
const glance = setUpGlance(keyOf)
const account = setUpAccount({
  enter (key, mayWrite) {
    leaveStore()
    session = new AbortController()
    byId('message-form').querySelector('fieldset')?.toggleAttribute('disabled', !mayWrite)
    document.documentElement.dataset['key'] = mayWrite ? 'writes' : 'reads'
    announceKey()
    messages.open(mayWrite)
    watch(key, mayWrite, session.signal)
  },
  leave () {
    leaveStore()
    byId('message-form').querySelector('fieldset')?.setAttribute('disabled', '')
    delete document.documentElement.dataset['key']
    announceKey()
    showState('off', byId('needs-key').textContent ?? '')
  }
})
offerRequests(keyOf)
if (keyOf() === undefined) for (const name of ['message', 'order', 'events']) showRequest(name, undefined)
for (const id of ['open-form', 'key-form']) byId(id).querySelector('fieldset')?.removeAttribute('disabled')

/** Removes what the page shows of a store. */
function leaveStore () {
  session?.abort()
  messages.clear()
  glance.close()
}

/** Tells the panel of the lab, which not every service has. */
function announceKey () {
  document.dispatchEvent(new Event('keychange'))
}

/**
 * Reads the store and follows its events, until `signal` aborts or the key is rejected.
 *
 * @param {string} key
 * @param {boolean} mayWrite
 * @param {AbortSignal} signal
 */
async function watch (key, mayWrite, signal) {
  const names = new Map()
  let isBroken = false
  while (!signal.aborted) {
    try {
      showState('waiting', 'Reading the store …')
      const replaced = new AbortController()
      const store = await readStore(key, signal, names)
      glance.open(store, mayWrite)
      // The user may have sent messages before. The stream begins after these events.
      for (const event of store.events) messages.handle(event)
      await follow({
        key,
        after: store.position,
        signal: AbortSignal.any([signal, replaced.signal]),
        onEvent (/** @type {StoreEvent} */ event) {
          // The store was reset or restored as a whole: the page reads it again.
          if (event.type === 'store.replaced') return replaced.abort()
          apply(store, event)
          messages.handle(event)
          glance.draw()
        },
        onState (feedState) {
          if (feedState === 'live') {
            showState('live', 'Live')
            // The service answers again.
            if (isBroken) for (const id of ['open-error', 'message-error', 'glance-error']) write(id, '')
            isBroken = false
          } else {
            isBroken = true
            showState('waiting', 'Connection lost. Reconnecting …')
          }
        }
      })
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof ApiError && error.status === 401) return account.forget(error.message)
      isBroken = true
      // For example 410: the next events have expired, so the page must read the whole store again.
      const message = error instanceof Error ? error.message : String(error)
      showState('waiting', `${message} The page reads the store again in a few seconds.`)
      await new Promise((resolve) => setTimeout(resolve, RETRY_DELAY_MS))
    }
  }
}

function showState (/** @type {'off' | 'waiting' | 'live'} */ name, /** @type {string} */ text) {
  byId('feed-state').dataset['state'] = name
  write('feed-state', text)
}
