import { byId, make, onAction, write } from './dom.js'
import { ApiError, loadKey, newIdempotencyKey, readList, send, Unreachable } from './service.js'

/** Attempts to place the order whose answer is lost. */
const MAX_ATTEMPTS = 3

/** Interval at which the panel looks whether the page uses a key. */
const CHECK_MS = 500

/** The snapshot that the panel restores. @type {number | undefined} */
let snapshot

const BUTTONS = ['lab-lose', 'lab-sunset', 'lab-snapshot', 'lab-empty']

setInterval(showState, CHECK_MS)
showState()

/** Enables the buttons while the page uses a key that may write. */
function showState () {
  const hasKey = loadKey() !== undefined && document.documentElement.dataset['key'] === 'writes'
  for (const id of BUTTONS) byId(id, HTMLButtonElement).disabled = !hasKey
  byId('lab-restore', HTMLButtonElement).disabled = !hasKey || snapshot === undefined
}

on('lab-lose', async (key) => {
  const petId = await petInStock(key)
  await request(key, 'POST', 'lab/faults', { operation: 'placeOrder', effect: { type: 'lose_answer' } })
  log('The next answer to an order will be lost.')
  const headers = { 'Idempotency-Key': newIdempotencyKey() }
  // Some browsers send the request again by themselves: then the first attempt succeeds.
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    try {
      const response = await send('POST', 'store/orders', { key, body: { petId }, headers })
      const { id } = await response.json()
      const replayed = response.headers.get('Idempotency-Replayed') === 'true' ? ', which was stored' : ''
      log(`Attempt ${attempt}: the service answered with order ${id}${replayed}. There is one order.`)
      return
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error
      log(`Attempt ${attempt}: the connection was closed without an answer. The order is committed.`)
    }
  }
})

on('lab-sunset', async (key) => {
  const petId = await anyPet(key)
  const { now } = await request(key, 'POST', 'lab/clock/advance', { to: '2030-12-06T00:00:00Z' })
  write('lab-clock', `The clock of this store shows ${now.slice(0, 10)}.`)
  try {
    await send('GET', `pets/${petId}`, { key })
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    log(`GET /pets/${petId} is answered ${error.status} ${error.code}, to this store alone.`)
  }
})

on('lab-snapshot', async (key) => {
  const taken = await request(key, 'POST', 'lab/snapshots', { label: 'From the first page' })
  snapshot = taken.id
  log(`Took snapshot ${taken.id} of ${taken.counts.pets} pets and ${taken.counts.orders} orders.`)
})

on('lab-empty', async (key) => {
  await request(key, 'POST', 'lab/reset', {})
  log('The store is empty.')
})

on('lab-restore', async (key) => {
  const { counts } = await request(key, 'POST', `lab/snapshots/${snapshot}/restore`)
  log(`Restored ${counts.pets} pets and ${counts.orders} orders, with the same ids and ETags.`)
})

/**
 * @param {string} id
 * @param {(key: string) => Promise<void>} act
 */
function on (id, act) {
  onAction(byId(id, HTMLButtonElement), 'lab-error', async () => {
    const key = loadKey()
    if (key !== undefined) await act(key)
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

function log (/** @type {string} */ text) {
  byId('lab-log').append(make('li', {}, text))
}
