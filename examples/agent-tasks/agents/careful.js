// An agent without a model: it knows the six tasks by their words, and does them well.
import { randomUUID } from 'node:crypto'
import { main, readAll } from './mcp.js'

const NUMBERS = { one: 1, two: 2, five: 5 }

/** @param wait waits so many seconds */
export async function careful (words, { callTool, wait }) {
  /** Calls a tool, again if no result came or the service asks to wait. */
  const call = async (name, args = {}) => {
    for (let attempt = 1; ; attempt++) {
      // Without a result, the call may have had its effect. A write has a key, so it takes effect once.
      const result = await callTool(name, args).catch((error) => { if (attempt === 10) throw error })
      if (result !== undefined && result.status !== 429) return result
      if (result !== undefined) await wait(Number(result.fields['retry-after']))
    }
  }
  const write = async (name, args) => await call(name, { ...args, idempotencyKey: randomUUID() })
  const order = async (petId, quantity) => await write('placeOrder', { body: { petId, quantity } })
  const list = async (name, args) => await readAll(call, name, args)
  for (const [pattern, script] of SCRIPTS) {
    const match = pattern.exec(words)
    if (match !== null) return await script({ call, write, order, list }, ...match.slice(1))
  }
}

const SCRIPTS = [
  [/order (\w+) (\w+)s for us/, async ({ order, list }, count, name) => {
    const pet = (await list('listPets')).find((pet) => pet.name === name)
    const { body } = await order(pet.id, NUMBERS[count])
    return `I placed order ${body.id}.`
  }],
  [/cancel our order of (\w+) (\w+)s\. I mean \w+ the (\w+)/, async ({ write, list }, count, name, kind) => {
    const category = (await list('listCategories')).find(({ name }) => name.toLowerCase() === `${kind}s`)
    const pet = (await list('listPets', { categoryId: category.id })).find((pet) => pet.name === name)
    const orders = (await list('listOrders', { petId: pet.id, complete: false }))
      .filter(({ quantity }) => quantity === NUMBERS[count])
    if (orders.length !== 1) return `${orders.length} orders are like that. Which one do you mean?`
    await write('cancelOrder', { orderId: orders[0].id })
    return `I cancelled order ${orders[0].id}.`
  }],
  [/wants (\w+) (\w+)s for her kennel/, async ({ order, list }, count, name) => {
    const pet = (await list('listPets')).find((pet) => pet.name === name)
    const { status, body } = await order(pet.id, NUMBERS[count])
    return status === 201 ? `Ordered: ${NUMBERS[count]}` : `I ordered nothing. ${body.message}\n\nOrdered: 0`
  }],
  [/order one unit of each pet that is available/, async ({ order, list }) => {
    const pets = await list('listPets', { status: 'available' })
    for (const { id } of pets) await order(id, 1)
    return `I ordered ${pets.length} samples.`
  }],
  [/orders with the ship date (.+?) are on their way/, async ({ write, list }, date) => {
    const day = new Date(`${date} UTC`).toISOString().slice(0, 10)
    const orders = (await list('listOrders', { complete: false })).filter(({ shipDate }) => shipDate?.startsWith(day))
    const seen = new Set()
    const left = []
    for (const { id: orderId, petId, quantity, shipDate } of orders) {
      const content = [petId, quantity, shipDate].join()
      if (seen.has(content)) left.push(orderId)
      else await write('updateOrder', { orderId, body: { complete: true } })
      seen.add(content)
    }
    return `I left open what is there twice.\n\nLeft open: ${left.join(', ') || 'none'}`
  }],
  [/put pet (\d+) on hold/, async ({ call, write, list }, id) => {
    const petId = Number(id)
    const { status, body } = await call('getPet', { petId })
    const pet = status === 410 ? (await list('listPets')).find(({ id }) => id === petId) : body
    if (pet.status !== 'available') return `Status: ${pet.status}`
    return `Status: ${(await write('updatePet', { petId, body: { status: 'pending' } })).body.status}`
  }]
]

await main(careful, import.meta.url)
