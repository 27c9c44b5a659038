/**
 * Returns an element of page.html.
 *
 * @template {HTMLElement} [T=HTMLElement]
 * @param {string} id
 * @param {new () => T} [type] the expected class of the element, by default any
 * @returns {T}
 */
export function byId (id, type) {
  const element = document.getElementById(id)
  if (!(element instanceof (type ?? HTMLElement))) throw new Error(`page.html has no such #${id}`)
  return /** @type {T} */ (element)
}

/** Time without a change after which screen readers hear of it. */
const QUIET_MS = 1_500

/** Matches phones. page.css has the same width. */
export const NARROW = matchMedia('(max-width: 56rem)')

/**
 * Creates an element with text and other elements inside.
 *
 * @param {string} name
 * @param {Record<string, string>} [attributes]
 * @param {...(string | Node)} content
 */
export function make (name, attributes = {}, ...content) {
  const element = document.createElement(name)
  for (const [attribute, value] of Object.entries(attributes)) element.setAttribute(attribute, value)
  element.append(...content)
  return element
}

/**
 * Sets the text of an element. Does not set the same text again: screen readers would repeat it.
 *
 * @param {string} id
 * @param {string} text
 */
export function write (id, text) {
  const element = byId(id)
  if (element.textContent !== text) element.textContent = text
}

/**
 * Returns a function that writes a text after a quiet time without another one, for screen readers: an announcement for
 * each change would be too much.
 *
 * @param {string} id
 * @param {() => void} [onWrite]
 * @returns {(text: string) => void}
 */
export function announcer (id, onWrite = () => {}) {
  let announced = ''
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  return (text) => {
    if (text === announced) return
    announced = text
    clearTimeout(timer)
    // What is no longer true must not be heard.
    if (text === '') return write(id, '')
    timer = setTimeout(() => {
      write(id, text)
      onWrite()
    }, QUIET_MS)
  }
}

/**
 * Runs `act` when the user submits the form or clicks the button, one run at a time. Shows the message of its error.
 *
 * @param {HTMLFormElement | HTMLButtonElement} source
 * @param {string} errorId the element for the message
 * @param {() => Promise<void>} act
 */
export function onAction (source, errorId, act) {
  let busy = false
  source.addEventListener(source instanceof HTMLFormElement ? 'submit' : 'click', async (event) => {
    event.preventDefault()
    if (busy) return
    busy = true
    source.setAttribute('aria-busy', 'true')
    write(errorId, '')
    try {
      await act()
    } catch (error) {
      write(errorId, error instanceof Error ? error.message : String(error))
    } finally {
      busy = false
      source.removeAttribute('aria-busy')
    }
  })
}

/**
 * Asks a question.
 *
 * @param {string} id the dialog, whose button with the value `yes` confirms
 * @returns {Promise<boolean>} whether the user confirmed
 */
export async function ask (id) {
  const dialog = byId(id, HTMLDialogElement)
  const closed = () => new Promise((resolve) => { dialog.addEventListener('close', resolve, { once: true }) })
  // A new question replaces an earlier one, whose answer is no.
  if (dialog.open) {
    const earlier = closed()
    dialog.close()
    await earlier
  }
  dialog.returnValue = ''
  dialog.showModal()
  await closed()
  return dialog.returnValue === 'yes'
}

/**
 * Copies a text to the clipboard.
 *
 * @param {string} text
 */
export async function copy (text) {
  // Browsers offer the clipboard only to pages loaded over HTTPS or from the same machine.
  if (navigator.clipboard !== undefined) return await navigator.clipboard.writeText(text)
  const field = document.createElement('textarea')
  field.className = 'unseen'
  field.value = text
  const { activeElement } = document
  document.body.append(field)
  field.select()
  const copied = document.execCommand('copy')
  field.remove()
  if (activeElement instanceof HTMLElement) activeElement.focus()
  if (!copied) throw new Error('The browser does not allow this page to copy. Select the text and copy it yourself.')
}
