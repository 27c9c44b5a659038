import { byId, copy, onAction, write } from './dom.js'
import { confirmStore, shortKey } from './linked-store.js'
import { clearAnswers, showRequest } from './requests.js'
import { ApiError, loadFormerKey, loadKey, send, storeFormerKey, storeKey } from './service.js'

/** Delay before the page tries a key again that the service could not check. */
const RETRY_DELAY_MS = 5_000

/**
 * Sets up step 1: creates a store, or uses the key of an existing one. Keeps the key while the tab is open.
 *
 * @typedef {{ enter: (key: string, mayWrite: boolean) => void, leave: () => void }} Listeners
 *
 * @param {Listeners} listeners called when the page gets a key, and when it forgets the key
 * @returns {{ keyOf: () => string | undefined, forget: (reason: string) => void }}
 */
export function setUpAccount ({ enter, leave }) {
  /** @type {string | undefined} */
  let current
  /** Counts what decides on the key of this tab: only the last attempt to use one counts. */
  let attempts = 0
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
    show(account.apiKey, { name: account.name, mayWrite: true }, true)
    byId('new-key').focus()
  })

  onAction(byId('key-form', HTMLFormElement), 'open-error', async () => {
    const key = field.value.trim()
    show(key, await ownerOf(key))
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

  onAction(byId('back', HTMLButtonElement), 'open-error', async () => {
    const key = loadFormerKey()
    if (key !== undefined) replace(key, await ownerOf(key))
  })

  const storedKey = loadKey()
  const resumed = storedKey === undefined ? undefined : resume(storedKey)
  followLink()
  window.addEventListener('hashchange', followLink)

  /** Uses the key of the address. Asks first if the tab has another one. */
  async function followLink () {
    const key = takeKeyFromAddress()
    if (key === undefined) return
    // The store of the stored key may be gone. If it is not, opening it removes what the page says about the link.
    await resumed
    const own = current ?? loadKey()
    if (key === own) return
    if (own === undefined) return await resume(key)
    try {
      const owner = await ownerOf(key)
      if (await confirmStore({ name: owner.name, key }, byId('present-name').textContent || shortKey(own))) {
        replace(key, owner)
      }
    } catch (error) {
      write('open-status', `The key of the link was not used: ${error instanceof Error ? error.message : String(error)}`)
    }
  }

  /**
   * Uses another key, and keeps the one before.
   *
   * @param {string} key
   * @param {{ name: string, mayWrite: boolean }} owner
   */
  function replace (key, owner) {
    storeFormerKey(current ?? loadKey())
    byId('new-key').hidden = true
    show(key, owner)
    byId('present').focus()
  }

  /**
   * Uses the key of the address, or the stored key after a reload. Does not show it. Tries again while the service
   * cannot check the key, until the user enters a store in another way.
   */
  async function resume (/** @type {string} */ key) {
    const attempt = ++attempts
    // The address has lost the key. It must outlive a reload.
    storeKey(key)
    while (attempt === attempts) {
      try {
        const owner = await ownerOf(key)
        if (attempt === attempts) show(key, owner)
        return
      } catch (error) {
        if (attempt !== attempts) return
        if (error instanceof ApiError && error.status < 500 && ![408, 429].includes(error.status)) {
          return forget(error.message)
        }
        const message = error instanceof Error ? error.message : String(error)
        write('open-error', `${message} The page tries your key again in a few seconds.`)
        await new Promise((resolve) => setTimeout(resolve, RETRY_DELAY_MS))
      }
    }
  }

  /**
   * @param {string} key
   * @param {{ name: string, mayWrite: boolean }} owner
   * @param {boolean} [isNew] whether this page has just created the store
   */
  function show (key, { name: storeName, mayWrite }, isNew = false) {
    attempts++
    current = key
    storeKey(key)
    field.value = ''
    byId('entrance').hidden = true
    byId('present').hidden = false
    write('present-name', storeName)
    write('open-heading', isNew ? 'Create a store' : `You are in ${storeName}`)
    if (!isNew) clearAnswers()
    showRequest('open', isNew ? {} : undefined)
    write('present-key', shortKey(key))
    const former = loadFormerKey()
    byId('back').hidden = former === undefined || former === key
    write('back-name', former === undefined ? '' : shortKey(former))
    write('open-status', '')
    write('open-error', '')
    byId('needs-key').hidden = true
    byId('read-only').hidden = mayWrite
    enter(key, mayWrite)
  }

  function forget (/** @type {string} */ reason) {
    attempts++
    current = undefined
    storeKey(undefined)
    storeFormerKey(undefined)
    byId('new-key-text').textContent = ''
    byId('new-key').hidden = true
    byId('present').hidden = true
    byId('entrance').hidden = false
    write('open-heading', 'Create a store')
    clearAnswers()
    showRequest('open', {})
    byId('needs-key').hidden = false
    byId('read-only').hidden = true
    write('open-error', '')
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

/** Returns the name of the store of a key, and whether the key may write. */
async function ownerOf (/** @type {string} */ key) {
  const [account, keys] = await Promise.all(['account', 'account/keys?limit=100'].map(async (path) =>
    await (await send('GET', path, { key })).json()))
  const prefix = key.split('_')[1]
  const isReadOnly = keys.some((/** @type {{ prefix: string, readOnly: boolean }} */ other) =>
    other.prefix === prefix && other.readOnly)
  return { name: String(account.name), mayWrite: !isReadOnly }
}
