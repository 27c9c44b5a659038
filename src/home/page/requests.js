import { byId, copy, make, NARROW } from './dom.js'
import { onAnswer } from './service.js'
import { inCurl, inJavaScript, inPython } from './languages.js'

/** @import { Shown } from './languages.js' */

/** The placeholder for the API key in a request. */
export const PLACEHOLDER = '<API_KEY>'

/** Time for which a button shows its result. */
const RESULT_MS = 2_000

/** @type {Record<string, (request: Shown, server: string) => string>} */
const LANGUAGES = { curl: inCurl, javascript: inJavaScript, python: inPython }

/** The fault that loses the response to an order. */
export const LOST_RESPONSE = { operation: 'placeOrder', effect: { type: 'lose_answer' } }

/** The requests of the page, by the block that shows them. @type {Record<string, Shown>} */
const requests = {
  open: { operation: 'createAccount', method: 'POST', path: '/accounts', body: { name: 'My store' }, isPublic: true },
  message: { operation: 'createMessage', method: 'POST', path: '/messages', body: { message: 'Hello' } },
  order: { operation: 'placeOrder', method: 'POST', path: '/store/orders', body: { petId: 1 } },
  events: { operation: 'followEvents', method: 'GET', path: '/events' },
  fault: { operation: 'createFault', method: 'POST', path: '/lab/faults', body: LOST_RESPONSE }
}

let language = 'curl'

/**
 * Shows the requests of the steps in the chosen language, with buttons that copy them. A copied request contains the
 * API key, which the page does not show.
 *
 * @param {() => string | undefined} keyOf
 */
export function offerRequests (keyOf) {
  // Without the lab, the page has no block for its request.
  if (document.querySelector('[data-request="fault"]') === null) delete requests['fault']
  const select = byId('language', HTMLSelectElement)
  // Some browsers keep the choice over a reload.
  language = select.value
  for (const name of Object.keys(requests)) offerRequest(name, keyOf)
  select.addEventListener('change', () => {
    language = select.value
    for (const name of Object.keys(requests)) draw(name)
  })
  byId('languages').hidden = false
  // Short enough to scroll on a phone.
  if (NARROW.matches) {
    for (const block of document.querySelectorAll('details[data-request]')) block.removeAttribute('open')
  }
  bodyFollows('store-name', 'open', (name) => ({ name }))
  bodyFollows('message-text', 'message', (message) => ({ message }))
  onAnswer(({ method, path, body, status, text }) => {
    const [name] = Object.entries(requests)
      .find(([, request]) => request.method === method && request.path === path) ?? []
    const pre = name === undefined ? null : document.querySelector(`[data-request="${name}"] .answer`)
    if (pre === null) return
    // With its request: the block above may already show the next one.
    const request = `${method} ${path}${body === undefined ? '' : ` ${JSON.stringify(body)}`}`
    pre.textContent = `${request}\n${status}\n${text.replace(/"psk_[^"]*"/, '"psk_…"')}`
    pre.removeAttribute('hidden')
  })
}

/**
 * Changes a request that the page shows. Hides it while the service would refuse it.
 *
 * @param {string} name
 * @param {Partial<Shown> | undefined} change
 */
export function showRequest (name, change) {
  blockOf(name).hidden = change === undefined
  if (change === undefined) return
  Object.assign(/** @type {Shown} */ (requests[name]), change)
  draw(name)
}

/** Removes the answers of another store. */
export function clearAnswers () {
  for (const pre of document.querySelectorAll('.answer')) pre.setAttribute('hidden', '')
}

function offerRequest (/** @type {string} */ name, /** @type {() => string | undefined} */ keyOf) {
  const block = blockOf(name)
  const button = block.querySelector('button.copy')
  const code = block.querySelector('code')
  if (!(button instanceof HTMLButtonElement) || code === null) return
  const withKey = (/** @type {string} */ text) => text.replaceAll(PLACEHOLDER, keyOf() ?? PLACEHOLDER)
  // A selected part is copied with the key, too.
  code.addEventListener('copy', (event) => {
    event.clipboardData?.setData('text/plain', withKey(String(getSelection())))
    event.preventDefault()
  })
  button.hidden = false
  const result = make('span', { class: 'unseen', role: 'status' })
  button.after(result)
  button.addEventListener('click', async () => {
    const text = code.textContent ?? ''
    const message = await copy(withKey(text))
      .then(
        () => withKey(text) === text ? 'Copied' : 'Copied with your API key',
        (/** @type {Error} */ error) => error.message
      )
    result.textContent = message
    button.dataset['result'] = message
    setTimeout(() => {
      result.textContent = ''
      delete button.dataset['result']
    }, RESULT_MS)
  })
  draw(name)
}

function draw (/** @type {string} */ name) {
  const code = blockOf(name).querySelector('code')
  const { server = '' } = document.documentElement.dataset
  if (code === null) return
  const text = LANGUAGES[language]?.(/** @type {Shown} */ (requests[name]), server) ?? ''
  const [start = '', ...rest] = text.split(PLACEHOLDER)
  code.replaceChildren(start, ...rest.flatMap((part) => [make('mark', {}, PLACEHOLDER), part]))
}

/**
 * Keeps the body of a request equal to the text of a field.
 *
 * @param {string} fieldId
 * @param {string} name
 * @param {(text: string) => object} bodyOf
 */
function bodyFollows (fieldId, name, bodyOf) {
  const field = byId(fieldId, HTMLInputElement)
  const show = () => {
    Object.assign(/** @type {Shown} */ (requests[name]), { body: bodyOf(field.value) })
    draw(name)
  }
  field.addEventListener('input', show)
  show()
}

function blockOf (/** @type {string} */ name) {
  const block = document.querySelector(`[data-request="${name}"]`)
  if (!(block instanceof HTMLElement)) throw new Error(`page.html has no request ${name}`)
  return block
}
