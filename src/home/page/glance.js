import { announcer, byId, make, NARROW, onAction, write } from './dom.js'
import { setUpEvents } from './events.js'
import { showRequest } from './requests.js'
import { onAnswer, post, send } from './service.js'
import { countStore, pickOrderable } from './store.js'

/** @import { Store } from './store.js' */

/** Maximum numbers of pets and events on a wide screen and on a phone. The user can ask for all pets. */
const LIMITS = { wide: { pets: 8, events: 8 }, narrow: { pets: 3, events: 2 } }

/** Sample data: categories, and the pets of each with their units in stock. */
const SAMPLES = [
  { category: 'Dogs', pets: [['Rex', 1], ['Bella', 2]] },
  { category: 'Cats', pets: [['Minka', 1], ['Felix', 3]] },
  { category: 'Fish', pets: [['Nemo', 12]] }
]

/**
 * Sets up step 3: shows the store, and changes it on request.
 *
 * @param {() => string | undefined} keyOf
 */
export function setUpGlance (keyOf) {
  /** @type {Store | undefined} */
  let store
  let mayWrite = true
  let isDrawScheduled = false
  let showsAll = false
  const fill = byId('fill', HTMLButtonElement)
  const order = byId('order', HTMLButtonElement)
  const more = byId('more-pets', HTMLButtonElement)
  const events = setUpEvents(keyOf, draw)
  const announce = announcer('glance-summary')

  more.addEventListener('click', () => {
    showsAll = !showsAll
    draw()
  })
  NARROW.addEventListener('change', draw)

  onAnswer(({ method, path, status }) => {
    if (!/^\/(categories|pets|inventory|store)\b/.test(path)) return
    byId('sent-list').append(make('li', {}, `${method} ${path}: ${status}`))
    write('sent-count', String(byId('sent-list').children.length))
    byId('sent').hidden = false
  })

  onAction(fill, 'glance-error', async () => {
    const key = keyOf() ?? ''
    let count = 0
    for (const { category: categoryName, pets } of SAMPLES) {
      const category = await post('categories', key, { name: categoryName })
      for (const [name, quantity] of pets) {
        const pet = await post('pets', key, { name, categoryId: category.id })
        await send('PATCH', `inventory/${pet.id}`, { key, body: { quantity } })
        count++
      }
    }
    if (key === keyOf()) write('glance-status', `Added ${count} pets and their stock.`)
  })

  onAction(order, 'glance-error', async () => {
    write('glance-status', '')
    const pet = store === undefined ? undefined : pickOrderable(store)
    if (pet === undefined) throw new Error('No pet is available and in stock. Add some pets first.')
    const key = keyOf() ?? ''
    const { id } = await post('store/orders', key, { petId: pet.id })
    if (key === keyOf()) write('glance-status', `Order ${id} was placed for one ${pet.name}.`)
  })

  /** Redraws the store once per frame, however many events arrive. */
  function draw () {
    if (isDrawScheduled) return
    isDrawScheduled = true
    requestAnimationFrame(() => {
      isDrawScheduled = false
      if (store !== undefined) show(store)
    })
  }

  function show (/** @type {Store} */ store) {
    const figures = countStore(store)
    const { available, pending, sold, units, orders } = figures
    for (const [name, value] of Object.entries(figures)) write(`count-${name}`, value.toLocaleString('en'))
    for (const part of byId('bar').querySelectorAll('i')) {
      part.style.flexGrow = String(figures[/** @type {'sold'} */ (part.dataset['status'])])
    }
    byId('count-limit').hidden = store.complete
    if (!store.complete) {
      write('count-limit', 'The store is large. The figures cover only the first pages of its lists.')
    }
    fill.classList.toggle('main', store.pets.size === 0)
    order.classList.toggle('main', store.pets.size > 0)
    const limits = NARROW.matches ? LIMITS.narrow : LIMITS.wide
    showPets(store, showsAll ? Infinity : limits.pets)
    events.show(store, limits.events, mayWrite)
    more.hidden = store.pets.size <= limits.pets
    more.textContent = showsAll ? 'Show fewer pets' : `Show ${(store.pets.size - limits.pets).toLocaleString('en')} more`
    more.setAttribute('aria-expanded', String(showsAll))
    // What an earlier state of the store caused.
    write('glance-error', '')
    const orderable = mayWrite ? pickOrderable(store) : undefined
    order.disabled = orderable === undefined
    showRequest('order', orderable === undefined ? undefined : { body: { petId: orderable.id } })
    announce(`${available} available, ${pending} pending, ${sold} sold; ${units} in stock; open orders: ${orders}`)
  }

  return {
    draw,
    /**
     * @param {Store} newStore
     * @param {boolean} isWritable whether the key may write
     */
    open (newStore, isWritable) {
      store = newStore
      mayWrite = isWritable
      fill.disabled = !mayWrite
      showRequest('events', {})
      draw()
    },
    close () {
      store = undefined
      for (const name of ['order', 'events']) showRequest(name, undefined)
      showsAll = false
      more.hidden = true
      byId('sent').hidden = true
      byId('sent-list').replaceChildren()
      announce('')
      for (const button of [fill, order]) {
        button.disabled = true
        button.classList.remove('main')
      }
      for (const figure of byId('glance').querySelectorAll('dd')) figure.textContent = '–'
      for (const part of byId('bar').querySelectorAll('i')) part.style.flexGrow = '0'
      for (const id of ['glance-status', 'glance-error']) write(id, '')
      byId('count-limit').hidden = true
      byId('shelf').replaceChildren(emptyRow())
      events.clear()
    }
  }
}

/** @param {Store} store @param {number} limit */
function showPets ({ pets, units, orders }, limit) {
  const open = new Map()
  for (const { petId } of orders.values()) open.set(petId, (open.get(petId) ?? 0) + 1)
  const rows = [...pets.values()].slice(0, limit).map(({ id, name, status }) => make('tr', {},
    make('th', { scope: 'row' }, name),
    make('td', {}, make('span', { class: 'chip', 'data-status': status }, status)),
    make('td', { class: 'figure' }, units.get(id)?.toLocaleString('en') ?? 'not counted'),
    make('td', { class: 'figure' }, String(open.get(id) ?? 0))))
  byId('shelf').replaceChildren(...rows.length === 0 ? [emptyRow()] : rows)
}

function emptyRow () {
  return make('tr', {}, make('td', { colspan: '4', class: 'hint' }, 'No pets yet.'))
}
