import { byId, make, whenAsked, write } from './dom.js'
import { post, send } from './service.js'
import { figuresOf, orderable, wordsOf } from './store.js'

/** @import { Store } from './store.js' */

/** So many pets are shown by name. */
const SHELF = 8

/** What changed is read out once it has been quiet for so long, in ms. */
const QUIET_MS = 1_500

/** What an empty store is filled with: kinds of animals, and for each its pets with the units counted. */
const ANIMALS = [
  { kind: 'Dogs', pets: [['Rex', 1], ['Bella', 2]] },
  { kind: 'Cats', pets: [['Minka', 1], ['Felix', 3]] },
  { kind: 'Fish', pets: [['Nemo', 12]] }
]

/**
 * Step 3: shows the store, and changes it on request.
 *
 * @param {() => string | undefined} keyOf
 */
export function setUpGlance (keyOf) {
  /** @type {Store | undefined} */
  let store
  let drawn = false
  let told = ''
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let telling
  const fill = byId('fill', HTMLButtonElement)
  const order = byId('order', HTMLButtonElement)

  whenAsked(fill, 'glance-error', async () => {
    const key = keyOf() ?? ''
    let count = 0
    for (const { kind, pets } of ANIMALS) {
      const category = await post('categories', key, { name: kind })
      for (const [name, quantity] of pets) {
        const pet = await post('pets', key, { name, categoryId: category.id })
        await send('PATCH', `inventory/${pet.id}`, { key, body: { quantity } })
        count++
      }
    }
    write('glance-status', `${count} pets were added and counted.`)
  })

  whenAsked(order, 'glance-error', async () => {
    write('glance-status', '')
    const pet = store === undefined ? undefined : orderable(store)
    if (pet === undefined) throw new Error('No pet is available and in stock. Add a few first.')
    const { id } = await post('store/orders', keyOf() ?? '', { petId: pet.id })
    write('glance-status', `Order ${id} takes one ${pet.name} out of the stock.`)
  })

  /** Many events make one drawing. */
  function draw () {
    if (drawn) return
    drawn = true
    requestAnimationFrame(() => {
      drawn = false
      if (store !== undefined) show(store)
    })
  }

  function show (/** @type {Store} */ store) {
    const figures = figuresOf(store)
    const { available, pending, sold, units, orders } = figures
    for (const [name, value] of Object.entries(figures)) write(`count-${name}`, value.toLocaleString('en'))
    for (const part of byId('bar').querySelectorAll('i')) {
      part.style.flexGrow = String(figures[/** @type {'sold'} */ (part.dataset['status'])])
    }
    byId('count-limit').hidden = store.whole
    if (!store.whole) write('count-limit', 'The store is large: only the first pages of its lists were read, and the figures are of those.')
    fill.classList.toggle('main', store.pets.size === 0)
    order.classList.toggle('main', store.pets.size > 0)
    showShelf(store)
    showEvents(store)
    tell(`${available} available, ${pending} pending, ${sold} sold; ${units} in stock; open orders: ${orders}`)
  }

  /** Read out when it is quiet again: an event after the other would be too many words. */
  function tell (/** @type {string} */ words) {
    if (words === told) return
    told = words
    clearTimeout(telling)
    telling = setTimeout(() => { write('glance-summary', words) }, QUIET_MS)
  }

  return {
    draw,
    /** @param {Store} read */
    open (read) {
      store = read
      fill.disabled = false
      order.disabled = false
      draw()
    },
    close () {
      store = undefined
      clearTimeout(telling)
      for (const button of [fill, order]) {
        button.disabled = true
        button.classList.remove('main')
      }
      for (const figure of byId('glance').querySelectorAll('dd')) figure.textContent = '–'
      for (const part of byId('bar').querySelectorAll('i')) part.style.flexGrow = '0'
      for (const id of ['glance-status', 'glance-error', 'glance-summary']) write(id, '')
      byId('count-limit').hidden = true
      byId('shelf').replaceChildren(emptyShelf())
      byId('events').replaceChildren(noEvents())
    }
  }
}

/** @param {Store} store */
function showShelf ({ pets, units, orders }) {
  const open = new Map()
  for (const { petId } of orders.values()) open.set(petId, (open.get(petId) ?? 0) + 1)
  const rows = [...pets.values()].slice(0, SHELF).map(({ id, name, status }) => make('tr', {},
    make('th', { scope: 'row' }, name),
    make('td', {}, make('span', { class: 'chip', 'data-status': status }, status)),
    make('td', { class: 'figure' }, units.get(id)?.toLocaleString('en') ?? 'not counted'),
    make('td', { class: 'figure' }, String(open.get(id) ?? 0))))
  const more = pets.size - rows.length
  if (more > 0) rows.push(make('tr', {}, make('td', { colspan: '4', class: 'hint' }, `and ${more.toLocaleString('en')} more`)))
  if (rows.length === 0) rows.push(emptyShelf())
  byId('shelf').replaceChildren(...rows)
  const [first] = pets.keys()
  if (first !== undefined) write('order-pet', String(first))
}

/** @param {Store} store */
function showEvents (store) {
  const items = store.events.map((event) => make('li', {},
    make('time', { datetime: event.timestamp }, new Date(event.timestamp).toLocaleTimeString('en-GB')),
    ' ', make('span', {}, wordsOf(store, event)),
    ' ', make('code', {}, event.type)))
  byId('events').replaceChildren(...items.length === 0 ? [noEvents()] : items)
}

function emptyShelf () {
  return make('tr', {}, make('td', { colspan: '4', class: 'hint' }, 'Nothing here yet.'))
}

function noEvents () {
  return make('li', { class: 'hint' }, 'Nothing has happened yet.')
}
