// Tests a client against faults. Every test has an account of its own, so all can run at once.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import test from 'node:test'
import { createClient, verifyWebhook } from 'petstore-lab/client'

const url = process.env.PETSTORE_URL || 'http://127.0.0.1:3000'
const { connect, createReceiver } = await import(process.env.CLIENT || './careful-client.js')

/** Opens an account with a store that has one pet in stock. */
async function openStore () {
  const { apiKey } = await createClient({ url }).createAccount({ name: 'A test' })
  const store = createClient({ url, apiKey })
  const { id: categoryId } = await store.createCategory({ name: 'Dogs' })
  const { id: petId } = await store.createPet({ name: 'Rex', categoryId })
  await store.updateInventory(petId, { quantity: 10 })
  return { store, petId, client: connect({ url, apiKey }) }
}

test('an order whose response was lost is placed once', async () => {
  const { store, petId, client } = await openStore()
  await store.createFault({ operation: 'placeOrder', effect: { type: 'lose_answer' } })
  await client.placeOrder(petId)
  assert.equal((await store.listOrders()).length, 1)
})

test('a response that takes a second is waited for', async () => {
  const { store, petId, client } = await openStore()
  await store.createFault({ operation: 'placeOrder', effect: { type: 'delay', ms: 1000 } })
  await client.placeOrder(petId)
  assert.equal((await store.listOrders()).length, 1)
})

test('an event that is delivered twice counts once', async () => {
  const { store, petId, client } = await openStore()
  const receiver = createReceiver()
  let calls = 0
  const server = createServer(async (request, response) => {
    const body = await text(request)
    receiver.receive(request.headers['webhook-id'], verifyWebhook({ secret, body, headers: request.headers }))
    response.writeHead(204).end()
    if (++calls === 2) server.emit('twice')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const target = `http://127.0.0.1:${server.address().port}/`
  const { secret } = await store.createWebhook({ url: target, events: ['order.placed'] })
  await store.createFault({ operation: 'webhook', effect: { type: 'corrupt', how: 'duplicate' } })
  const twice = once(server, 'twice')
  await client.placeOrder(petId)
  await twice
  server.close()
  server.closeAllConnections()
  assert.equal(receiver.count(), 1)
})
