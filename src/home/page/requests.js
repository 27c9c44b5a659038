import { byId, copy, make, write } from './dom.js'

/** What a request for the terminal holds in place of a key. */
const PLACE = '<API_KEY>'

/** Shown on a button for so long, in ms. */
const SHOWN_MS = 2_000

/**
 * The requests beside the steps: each can be copied, with the key if there is one.
 *
 * @param {() => string | undefined} keyOf
 */
export function offerRequests (keyOf) {
  for (const button of document.querySelectorAll('button.copy')) {
    const code = button.parentElement?.querySelector('code')
    if (!(button instanceof HTMLButtonElement) || code == null) continue
    button.hidden = false
    const said = make('span', { class: 'unseen', role: 'status' })
    button.after(said)
    button.addEventListener('click', async () => {
      const text = code.textContent ?? ''
      const key = keyOf()
      const withKey = key !== undefined && text.includes(PLACE)
      const words = await copy(withKey ? text.replaceAll(PLACE, key) : text)
        .then(() => withKey ? 'Copied, with your key' : 'Copied', (/** @type {Error} */ error) => error.message)
      said.textContent = words
      button.dataset['said'] = words
      setTimeout(() => {
        said.textContent = ''
        delete button.dataset['said']
      }, SHOWN_MS)
    })
  }
  mirror('store-name', 'open-body', (name) => ({ name }))
  mirror('message-text', 'message-body', (message) => ({ message }))
}

/**
 * Shows in a request what a field holds.
 *
 * @param {string} fieldId
 * @param {string} bodyId
 * @param {(text: string) => object} bodyOf
 */
function mirror (fieldId, bodyId, bodyOf) {
  const field = byId(fieldId, HTMLInputElement)
  const show = () => { write(bodyId, quoted(JSON.stringify(bodyOf(field.value)))) }
  field.addEventListener('input', show)
  show()
}

/** Inside single quotes a shell takes everything as it is, but the single quote. */
function quoted (/** @type {string} */ text) {
  return text.replaceAll("'", "'\\''")
}
