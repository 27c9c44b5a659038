import { byId, copy, whenAsked, write } from './dom.js'
import { keepKey, keptKey, Refusal, send } from './service.js'

/**
 * Step 1: opens a store or takes the key of one, and keeps the key while the tab is open.
 *
 * @param {{ enter: (key: string) => void, leave: () => void }} store called when the page has a key, and when it has none any more
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

  whenAsked(byId('open-form', HTMLFormElement), 'open-error', async () => {
    const answer = await send('POST', 'accounts', { body: { name: name.value } })
    const account = await answer.json()
    byId('new-key-text').textContent = account.apiKey
    byId('new-key').hidden = false
    show(account.apiKey, account.name)
    byId('new-key').focus()
  })

  whenAsked(byId('key-form', HTMLFormElement), 'open-error', async () => {
    const key = field.value.trim()
    show(key, await nameOf(key))
    byId('present').focus()
  })

  whenAsked(byId('new-key-copy', HTMLButtonElement), 'open-error', async () => {
    await copy(byId('new-key-text').textContent ?? '')
    write('open-status', 'The key is copied.')
  })

  byId('leave').addEventListener('click', () => {
    forget('The key is forgotten. The store is still there for whoever holds one of its keys.')
    ;(byId('open-form').hidden ? field : name).focus()
  })

  const kept = keptKey()
  if (kept !== undefined) resume(kept)

  /** A page that is loaded again goes on where it was; the key itself is not shown again. */
  async function resume (/** @type {string} */ key) {
    try {
      show(key, await nameOf(key))
    } catch (error) {
      if (error instanceof Refusal && error.status === 401) return forget(error.message)
      write('open-error', error instanceof Error ? `${error.message} Load the page again to go on with the key of this tab.` : '')
    }
  }

  function show (/** @type {string} */ key, /** @type {string} */ storeName) {
    current = key
    keepKey(key)
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
    keepKey(undefined)
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

async function nameOf (/** @type {string} */ key) {
  const answer = await send('GET', 'account', { key })
  return String((await answer.json()).name)
}
