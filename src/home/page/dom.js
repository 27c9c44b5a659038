/**
 * An element of page.html.
 *
 * @template {HTMLElement} [T=HTMLElement]
 * @param {string} id
 * @param {new () => T} [type] what it is, if more than any element is asked of it
 * @returns {T}
 */
export function byId (id, type) {
  const element = document.getElementById(id)
  if (!(element instanceof (type ?? HTMLElement))) throw new Error(`page.html has no such #${id}`)
  return /** @type {T} */ (element)
}

/**
 * A new element that holds text and other elements.
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
 * Writes a text, but not the same again: a screen reader would read it out once more.
 *
 * @param {string} id
 * @param {string} text
 */
export function write (id, text) {
  const element = byId(id)
  if (element.textContent !== text) element.textContent = text
}

/**
 * Runs `act` when the form is sent or the button pressed, one at a time, and says in words what went wrong.
 *
 * @param {HTMLFormElement | HTMLButtonElement} source
 * @param {string} errorId where it is said
 * @param {() => Promise<void>} act
 */
export function whenAsked (source, errorId, act) {
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

/** @param {string} text */
export async function copy (text) {
  // Only pages that came over HTTPS, or from this very machine, may use the clipboard directly.
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
  if (!copied) throw new Error('The browser does not let this page copy. Mark the text and copy it yourself.')
}
