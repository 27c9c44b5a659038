import { byId, copy, make, write } from './dom.js'

/** The placeholder for the API key in a request. */
const PLACEHOLDER = '<API_KEY>'

/** Time for which a button shows its result. */
const RESULT_MS = 2_000

/**
 * Adds buttons that copy the requests of the steps, with the API key if there is one.
 *
 * @param {() => string | undefined} keyOf
 */
export function offerRequests (keyOf) {
  for (const button of document.querySelectorAll('button.copy')) {
    const code = button.parentElement?.querySelector('code')
    if (!(button instanceof HTMLButtonElement) || code == null) continue
    button.hidden = false
    const result = make('span', { class: 'unseen', role: 'status' })
    button.after(result)
    button.addEventListener('click', async () => {
      const text = code.textContent ?? ''
      const key = keyOf()
      const withKey = key !== undefined && text.includes(PLACEHOLDER)
      const message = await copy(withKey ? text.replaceAll(PLACEHOLDER, key) : text)
        .then(() => withKey ? 'Copied with your API key' : 'Copied', (/** @type {Error} */ error) => error.message)
      result.textContent = message
      button.dataset['result'] = message
      setTimeout(() => {
        result.textContent = ''
        delete button.dataset['result']
      }, RESULT_MS)
    })
  }
  showInRequest('store-name', 'open-body', (name) => ({ name }))
  showInRequest('message-text', 'message-body', (message) => ({ message }))
}

/**
 * Shows the text of a field in a request.
 *
 * @param {string} fieldId
 * @param {string} bodyId
 * @param {(text: string) => object} bodyOf
 */
function showInRequest (fieldId, bodyId, bodyOf) {
  const field = byId(fieldId, HTMLInputElement)
  const show = () => { write(bodyId, escapeForShell(JSON.stringify(bodyOf(field.value)))) }
  field.addEventListener('input', show)
  show()
}

/** Escapes single quotes: a shell takes all other characters inside single quotes literally. */
function escapeForShell (/** @type {string} */ text) {
  return text.replaceAll("'", "'\\''")
}
