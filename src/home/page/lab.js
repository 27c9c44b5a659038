import { ask, byId, make, onAction, write } from './dom.js'
import { LOST_RESPONSE, showRequest } from './requests.js'
import { ApiError, loadKey, newIdempotencyKey, readList, send, Unreachable } from './service.js'
import { shorten } from './store.js'

/** Attempts to place the order whose response is lost. */
const MAX_ATTEMPTS = 3

/** The snapshot that the panel restores. @type {{ id: number, label?: string } | undefined} */
let snapshot
/** How far the clock of the store is ahead of real time. */
let offsetSeconds = 0
/** Counts the keys of this tab: a response to a former one is too late. */
let entries = 0

document.addEventListener('keychange', enter)
enter()

/** Reads what the panel shows of the store that the page has entered. */
async function enter () {
  const entry = ++entries
  snapshot = undefined
  offsetSeconds = 0
  byId('lab-log').replaceChildren()
  write('lab-error', '')
  showState()
  const key = keyInUse()
  if (key === undefined) return
  try {
    const [[newest], clock] = await Promise.all(['lab/snapshots?limit=1&sort=-id', 'lab/clock'].map(async (path) =>
      await (await send('GET', path, { key })).json()))
    if (entry !== entries) return
    snapshot ??= newest
    offsetSeconds = Math.max(offsetSeconds, clock.offsetSeconds)
    showState()
  } catch (error) {
    if (entry === entries) write('lab-error', error instanceof Error ? error.message : String(error))
  }
}

/** The key, once the page knows whether it may write. */
function keyInUse () {
  return document.documentElement.dataset['key'] === undefined ? undefined : loadKey()
}

function showState () {
  const mayWrite = document.documentElement.dataset['key'] === 'writes'
  for (const id of ['lab-lose', 'lab-sunset', 'lab-snapshot', 'lab-empty']) {
    byId(id, HTMLButtonElement).disabled = !mayWrite
  }
  byId('lab-restore', HTMLButtonElement).disabled = !mayWrite || snapshot === undefined
  const label = snapshot?.label === undefined ? '' : `: ${shorten(snapshot.label)}`
  write('lab-restore', snapshot === undefined ? 'Restore a snapshot' : `Restore snapshot ${snapshot.id}${label}`)
  const reason = byId(keyInUse() === undefined ? 'needs-key' : 'read-only').textContent ?? ''
  write('lab-why', mayWrite ? '' : reason)
  showRequest('fault', mayWrite ? {} : undefined)
  const date = new Date(Date.now() + offsetSeconds * 1000).toISOString().slice(0, 10)
  write('lab-clock', offsetSeconds === 0 ? 'The clock shows real time.' : `The clock of this store shows ${date}.`)
}

on('lab-lose', async (key, log) => {
  const petId = await petInStock(key)
  await request(key, 'POST', 'lab/faults', LOST_RESPONSE)
  log('The response to the next order will be lost.')
  const headers = { 'Idempotency-Key': newIdempotencyKey() }
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    try {
      const response = await send('POST', 'store/orders', { key, body: { petId }, headers })
      const { id } = await response.json()
      const isReplayed = response.headers.get('Idempotency-Replayed') === 'true'
      // Browsers repeat a request by themselves if the connection closes that an earlier request has used.
      log(`Attempt ${attempt}: ${attempt > 1 || !isReplayed
        ? ''
        : 'the response was lost. Your browser repeated the request by itself, and '}the service answered with ${
        isReplayed ? 'the stored ' : ''}order ${id}. There is one order.`)
      return
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error
      log(`Attempt ${attempt}: the connection was closed without a response. The order is committed.`)
    }
  }
})

on('lab-sunset', async (key, log) => {
  const petId = await anyPet(key)
  /** @returns the time at which the operation ends, or undefined after it */
  const sunset = async () => {
    try {
      return (await send('GET', `pets/${petId}`, { key })).headers.get('Sunset') ?? undefined
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'operation_sunset') throw error
      log(`GET /pets/${petId} now returns ${error.status} ${error.code}, for this store only.`)
      return undefined
    }
  }
  const time = await sunset()
  if (time === undefined) return
  const to = new Date(time).toISOString()
  write('clock-name', byId('present-name').textContent ?? '')
  write('clock-to', to.slice(0, 10))
  if (!await ask('move-clock')) return
  const clock = await request(key, 'POST', 'lab/clock/advance', { to })
  offsetSeconds = clock.offsetSeconds
  await sunset()
})

on('lab-snapshot', async (key, log) => {
  const taken = await request(key, 'POST', 'lab/snapshots', { label: 'From the first page' })
  snapshot = taken
  log(`Took snapshot ${taken.id} of ${taken.counts.pets} pets and ${taken.counts.orders} orders.`)
})

on('lab-empty', async (key, log) => {
  write('empty-name', byId('present-name').textContent ?? '')
  if (!await ask('empty-store')) return
  await request(key, 'POST', 'lab/reset', {})
  log('The store is empty.')
})

on('lab-restore', async (key, log) => {
  const { counts } = await request(key, 'POST', `lab/snapshots/${snapshot?.id}/restore`)
  log(`Restored ${counts.pets} pets and ${counts.orders} orders, with the same ids and ETags.`)
})

/**
 * @param {string} id
 * @param {(key: string, log: (text: string) => void) => Promise<void>} act
 */
function on (id, act) {
  onAction(byId(id, HTMLButtonElement), 'lab-error', async () => {
    const key = keyInUse()
    const entry = entries
    const log = (/** @type {string} */ text) => {
      // Meanwhile, the user may have entered another store.
      if (entry === entries) byId('lab-log').append(make('li', {}, text))
    }
    if (key !== undefined) await act(key, log)
    showState()
  })
}

/**
 * @param {string} key
 * @param {string} method
 * @param {string} path
 * @param {unknown} [body]
 * @returns {Promise<any>}
 */
async function request (key, method, path, body) {
  const response = await send(method, path, { key, body, headers: { 'Idempotency-Key': newIdempotencyKey() } })
  return await response.json()
}

async function petInStock (/** @type {string} */ key) {
  const { records } = await readList('inventory', { status: 'available' }, key, 1, new AbortController().signal)
  if (records[0] === undefined) throw new Error('No pet is in stock. Add a few pets first.')
  return records[0].petId
}

async function anyPet (/** @type {string} */ key) {
  const { records } = await readList('pets', {}, key, 1, new AbortController().signal)
  if (records[0] === undefined) throw new Error('The store has no pets. Add a few pets first.')
  return records[0].id
}
