import { announcer, byId, make, onAction, write } from './dom.js'
import { follow } from './feed.js'
import { loadKey, RUN, send } from './service.js'
import { shorten } from './store.js'

/** Maximum number of requests that the panel shows, and that the journal keeps. */
const MAX_SHOWN = 20
const KEEP = 1_000

/**
 * @typedef {object} RecordedRequest
 * @property {number} id
 * @property {string} at
 * @property {string} method
 * @property {string} path
 * @property {string} outcome
 * @property {number} [status]
 * @property {string} [run]
 * @property {string} [answer]
 * @property {number} [faultId]
 * @property {string} [idempotencyKey]
 * @property {boolean} [replayed]
 * @property {number} [attemptOf]
 * @property {number} [pauseMs]
 * @property {{ pointer: string, rule: string }} [problem]
 */

const button = byId('journal-switch', HTMLButtonElement)
/** Aborts what belongs to a former key, or to a journal that was turned off. @type {AbortController | undefined} */
let session

/** Requests that screen readers have not heard of. */
let unheard = 0
const announce = announcer('journal-news', () => { unheard = 0 })

document.addEventListener('keychange', () => { enter() })
enter()

onAction(button, 'journal-error', async () => {
  const key = loadKey() ?? ''
  const before = session
  const isOn = button.getAttribute('aria-checked') === 'true'
  await send(isOn ? 'DELETE' : 'PUT', 'lab/journal', isOn ? { key } : { key, body: { keep: KEEP } })
  // Follows the journal as long as it is on. Meanwhile, the user may have entered another store.
  if (session === before) enter(!isOn)
})

/**
 * Shows whether the store of this tab has a journal, and follows its requests.
 *
 * @param {boolean} [isOn] by default, the journal is on if it has requests: to ask for one that is off is an error
 */
async function enter (isOn) {
  session?.abort()
  const { signal } = session = new AbortController()
  const { key: state } = document.documentElement.dataset
  const key = state === undefined ? undefined : loadKey()
  button.disabled = state !== 'writes'
  button.setAttribute('aria-checked', 'false')
  byId('journal').replaceChildren()
  write('journal-error', '')
  write('journal-state', '')
  announce('')
  unheard = 0
  if (key === undefined) return
  try {
    isOn ??= (await (await send('GET', 'lab/requests?limit=1', { key, signal })).json()).length > 0
    if (!isOn || signal.aborted) return
    button.setAttribute('aria-checked', 'true')
    write('journal-state', 'Waiting for requests with this store’s API keys …')
    const path = 'lab/requests'
    await follow({ path, key, after: undefined, signal, onEvent: show, onState: () => {} })
  } catch (error) {
    if (!signal.aborted) write('journal-error', error instanceof Error ? error.message : String(error))
  }
}

/** Adds a request to the list. This page sends many: they are not shown. */
function show (/** @type {RecordedRequest} */ request) {
  if (request.run === RUN) return
  const { at, method, path, status, outcome } = request
  const list = byId('journal')
  const time = new Date(at).toLocaleTimeString('en-GB')
  const text = `${method} ${shorten(path)}: ${status ?? 'no response'}${outcome === 'answered' ? '' : `, ${outcome}`}`
  const details = describe(request)
  write('journal-state', '')
  list.prepend(make('li', { class: (status ?? 0) < 400 ? '' : 'refused' },
    make('time', { datetime: at }, time), ' ', make('span', {}, text), ' ', make('code', {}, details)))
  while (list.children.length > MAX_SHOWN) list.lastChild?.remove()
  unheard++
  announce(`${unheard === 1 ? '' : `${unheard} requests. The last: `}${time} ${text} ${details}`)
}

/** What was wrong with a request, and which attempt it is. */
function describe (/** @type {RecordedRequest} */ request) {
  const { faultId, attemptOf, pauseMs, idempotencyKey, replayed, run } = request
  return [
    ...reasonsOf(request),
    faultId === undefined ? undefined : `fault ${faultId}`,
    attemptOf === undefined ? undefined : `request ${attemptOf} again, after ${pauseMs} ms`,
    idempotencyKey === undefined ? undefined : `key ${shorten(idempotencyKey)}`,
    replayed === true ? 'replayed' : undefined,
    run === undefined ? undefined : `run ${shorten(run)}`
  ].filter((part) => part !== undefined).join(' · ')
}

/** The code of an error response, and the place of the problem or the message. A fault may have broken its body. */
function reasonsOf (/** @type {RecordedRequest} */ { status = 0, answer = '', faultId, problem }) {
  if (status < 400) return []
  const code = /"code":"(\w+)"/.exec(answer)?.[1]
  if (problem !== undefined && problem.pointer !== '') return [code, `${problem.pointer}: ${problem.rule}`]
  const message = /"message":"((?:[^"\\]|\\.)*)"/.exec(answer)?.[1]
  return [code, faultId === undefined ? message?.replace(/\\(.)/g, '$1') : undefined]
}
