// The adapter of petstore-lab/client, which passes all papers:
//
//   npx --no petstore exam --client "node examples/exam/petstore-client.mjs"

import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { createClient, verifyWebhook } from 'petstore-lab/client'
import { serve } from './serve.mjs'

const { secrets, received, cache } = { secrets: [], received: new Set(), cache: new Map() }

await serve(createClient, {
  async getPet (store, { petId }) {
    return await store.getPet(petId).catch(async (error) => {
      if (error.code !== 'operation_sunset') throw error
      return (await store.listPets({ id: [petId] }))[0]
    })
  },

  async refreshPet (store, { petId }) {
    const known = cache.get(petId)
    const { data = known.pet, response } = await store.getPet(petId, { headers: { 'If-None-Match': known?.etag } })
      .withResponse()
    cache.set(petId, { pet: data, etag: response.headers.get('etag') })
    return data
  },

  async listPets (store) {
    const ids = []
    for await (const { id } of store.listPets({ limit: 100 })) ids.push(id)
    return ids
  },

  async placeOrder (store, order) {
    return await store.placeOrder(order)
  },

  async appendToName (store, { petId, text }) {
    for (;;) {
      const { data: { name }, response } = await store.getPet(petId).withResponse()
      try {
        return await store.updatePet(petId, { name: name + text }, { headers: { 'If-Match': response.headers.get('etag') } })
      } catch (error) {
        if (error.code !== 'precondition_failed') throw error
      }
    }
  },

  followEvents,

  async receiveWebhooks (_store, { secret }) {
    secrets.push(secret)
    const receiver = createServer(async (request, response) => {
      try {
        const { id } = verifyWebhook({ secret: secrets, body: await text(request), headers: request.headers })
        received.add(id)
        response.writeHead(204).end()
      } catch {
        response.writeHead(401).end()
      }
    })
    await new Promise((resolve) => { receiver.listen(0, '127.0.0.1', resolve) })
    return { url: `http://127.0.0.1:${receiver.address().port}/` }
  },

  async changeSecret (_store, { secret }) {
    secrets.push(secret)
  },

  async receivedEvents () {
    return [...received]
  }
})

async function followEvents (store, { after, count }) {
  const ids = []
  try {
    for await (const { id } of store.followEvents({ after })) {
      if (ids.push(id) === count) break
    }
    return ids
  } catch (error) {
    if (error.code !== 'events_expired') throw error
    return await followEvents(store, { count })
  }
}
