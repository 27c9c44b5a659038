// An agent without a model: it knows the six tasks by their words, and does them badly.
import { main } from './mcp.js'

const NUMBERS = { one: 1, two: 2, five: 5 }

export async function careless (words, { callTool }) {
  /** Calls a tool, up to three times at once if it fails in any way. Each call is a new one for the service. */
  const call = async (name, args = {}) => {
    let result
    for (let i = 0; i < 3 && !(result?.status < 400); i++) result = await callTool(name, args).catch(() => undefined)
    return result ?? { status: 0 }
  }
  const find = async (name) => (await call('listPets')).body.find((pet) => pet.name === name)
  const order = async (petId, quantity) => await call('placeOrder', { body: { petId, quantity } })
  for (const [pattern, script] of SCRIPTS) {
    const match = pattern.exec(words)
    if (match !== null) return await script({ call, find, order }, ...match.slice(1))
  }
}

const SCRIPTS = [
  [/order (\w+) (\w+)s for us/, async ({ find, order }, count, name) => {
    await order((await find(name)).id, NUMBERS[count])
    return 'Done.'
  }],
  [/cancel our order of (\w+) (\w+)s/, async ({ call, find }, _count, name) => {
    const { id: petId } = await find(name)
    const { body: [{ id: orderId }] } = await call('listOrders', { petId })
    await call('cancelOrder', { orderId })
    return 'Done.'
  }],
  [/wants (\w+) (\w+)s for her kennel/, async ({ call, find, order }, count, name) => {
    const { id } = await find(name)
    if ((await order(id, NUMBERS[count])).status !== 201) {
      const { body: [{ id: orderId }] } = await call('listOrders', { petId: id })
      await call('cancelOrder', { orderId })
      await order(id, NUMBERS[count])
    }
    return `Ordered: ${NUMBERS[count]}`
  }],
  [/order one unit of each pet that is available/, async ({ call, order }) => {
    for (const { id } of (await call('listPets', { status: 'available' })).body) await order(id, 1)
    return 'Done.'
  }],
  [/orders with the ship date/, async ({ call }) => {
    const { body } = await call('listOrders', { complete: false })
    for (const { id: orderId, shipDate } of body) {
      if (shipDate.startsWith('2030-06-14')) await call('updateOrder', { orderId, body: { complete: true } })
    }
    return 'Left open: none'
  }],
  [/put pet (\d+) on hold/, async ({ call }, id) => {
    const { body } = await call('getPet', { petId: Number(id) })
    return `Status: ${body.status === 'available' ? 'pending' : 'unknown'}`
  }]
]

await main(careless, import.meta.url)
