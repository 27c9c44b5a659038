import { setUpAccount } from './account.js'
import { byId, write } from './dom.js'
import { follow } from './feed.js'
import { setUpGlance } from './glance.js'
import { setUpMessages } from './messages.js'
import { offerRequests } from './requests.js'
import { Refusal } from './service.js'
import { apply, readStore } from './store.js'

/** Before the store is read again, when it could not be, in ms. */
const AGAIN_MS = 5_000

/** Ends what belongs to the store that the page is in. @type {AbortController | undefined} */
let visit

const keyOf = () => account.keyOf()
const messages = setUpMessages(keyOf)
const glance = setUpGlance(keyOf)
const account = setUpAccount({
  enter (key) {
    visit?.abort()
    visit = new AbortController()
    byId('message-form').querySelector('fieldset')?.removeAttribute('disabled')
    watch(key, visit.signal)
  },
  leave () {
    visit?.abort()
    byId('message-form').querySelector('fieldset')?.setAttribute('disabled', '')
    messages.clear()
    glance.close()
    state('off', 'Open a store first.')
  }
})
offerRequests(keyOf)
for (const id of ['open-form', 'key-form']) byId(id).querySelector('fieldset')?.removeAttribute('disabled')

/**
 * Reads the store and follows its events, until `signal` ends it or the key does.
 *
 * @param {string} key
 * @param {AbortSignal} signal
 */
async function watch (key, signal) {
  while (!signal.aborted) {
    try {
      state('waiting', 'Reading the store …')
      const store = await readStore(key, signal)
      glance.open(store)
      await follow({
        key,
        after: store.position,
        signal,
        onEvent (event) {
          apply(store, event)
          messages.take(event)
          glance.draw()
        },
        onState (now) {
          if (now === 'live') state('live', 'Live')
          else state('waiting', 'The connection broke; it is tried again …')
        }
      })
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof Refusal && error.status === 401) return account.forget(error.message)
      // Among others 410: what came meanwhile is no longer held, so all is read anew.
      state('waiting', `${error instanceof Error ? error.message : String(error)} The store is read again in a moment.`)
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
    }
  }
}

function state (/** @type {'off' | 'waiting' | 'live'} */ name, /** @type {string} */ words) {
  byId('feed-state').dataset['state'] = name
  write('feed-state', words)
}
