import { byId, copy, onAction, write } from './dom.js'
import { ApiError, loadKey, send, storeKey } from './service.js'

/**
 * Sets up step 1: creates a store, or uses the key of an existing one. Keeps the key while the tab is open.
 *
 * @typedef {{ enter: (key: string) => void, leave: () => void }} Listeners
 *
 * @param {Listeners} listeners called when the page gets a key, and when it forgets the key
 * @returns {{ keyOf: () => string | undefined, forget: (reason: string) => void }}
 */
export function setUpAccount ({ enter, leave }) {
  /** @type {string | undefined} */
  let current
  const name = byId('store-name', HTMLInputElement)
  const field = byId('key-text', HTMLInputElement)
  const ownKey = byId('own-key', HTMLDetailsElement)

  if (document.documentElement.dataset['signup'] === 'closed') {
    byId('open-form').hidden = true
    byId('signup-closed').hidden = false
    ownKey.open = true
  }

  onAction(byId('open-form', HTMLFormElement), 'open-error', async () => {
    const response = await send('POST', 'accounts', { body: { name: name.value } })
    const account = await response.json()
    byId('new-key-text').textContent = account.apiKey
    byId('new-key').hidden = false
    show(account.apiKey, account.name)
    byId('new-key').focus()
  })

  onAction(byId('key-form', HTMLFormElement), 'open-error', async () => {
    const key = field.value.trim()
    show(key, await nameOf(key))
    byId('present').focus()
  })

  onAction(byId('new-key-copy', HTMLButtonElement), 'open-error', async () => {
    await copy(byId('new-key-text').textContent ?? '')
    write('open-status', 'The key was copied.')
  })

  byId('leave').addEventListener('click', () => {
    forget('This tab has forgotten the key. The store still exists, and its keys still work.')
    ;(byId('open-form').hidden ? field : name).focus()
  })

  const firstKey = takeKeyFromAddress() ?? loadKey()
  if (firstKey !== undefined) resume(firstKey)
  window.addEventListener('hashchange', () => {
    const key = takeKeyFromAddress()
    if (key !== undefined) resume(key)
  })

  /** Uses the key of the address, or the stored key after a reload. Does not show it. */
  async function resume (/** @type {string} */ key) {
    try {
      show(key, await nameOf(key))
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) return forget(error.message)
      const message = error instanceof Error ? error.message : String(error)
      write('open-error', `${message} Reload the page to try again with the key of this tab.`)
    }
  }

  function show (/** @type {string} */ key, /** @type {string} */ storeName) {
    current = key
    storeKey(key)
    field.value = ''
    byId('entrance').hidden = true
    byId('present').hidden = false
    write('present-name', storeName)
    write('present-key', `${key.split('_').slice(0, 2).join('_')}…`)
    write('open-status', '')
    write('open-error', '')
    for (const hint of document.querySelectorAll('.needs-key')) /** @type {HTMLElement} */ (hint).hidden = true
    enter(key)
  }

  function forget (/** @type {string} */ reason) {
    current = undefined
    storeKey(undefined)
    byId('new-key-text').textContent = ''
    byId('new-key').hidden = true
    byId('present').hidden = true
    byId('entrance').hidden = false
    for (const hint of document.querySelectorAll('.needs-key')) /** @type {HTMLElement} */ (hint).hidden = false
    write('open-status', reason)
    leave()
  }

  return { keyOf: () => current, forget }
}

/**
 * Returns the key of an address such as `/#key=psk_…`, which `npm start` prints, and removes it from the address: the
 * history and bookmarks must not keep it. Browsers do not send the part after the `#`.
 */
function takeKeyFromAddress () {
  const key = new URLSearchParams(location.hash.slice(1)).get('key') ?? undefined
  if (key !== undefined) history.replaceState(null, '', location.pathname + location.search)
  return key
}

async function nameOf (/** @type {string} */ key) {
  const response = await send('GET', 'account', { key })
  return String((await response.json()).name)
}
