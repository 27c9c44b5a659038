// A client as many are written, with `fetch` alone. docs/reference/exam-results.md says which papers it fails.

import { createServer } from 'node:http'
import { serve } from './serve.mjs'

const received = []

class Petstore {
  constructor ({ url, apiKey, timeoutMs }) {
    Object.assign(this, { url, apiKey, timeoutMs })
  }

  async call (method, path, body) {
    for (let attempt = 1; ; attempt++) {
      try {
        const response = await fetch(this.url + path, {
          method,
          headers: { Authorization: `Bearer ${this.apiKey}`, 'Content-Type': 'application/json' },
          body: body && JSON.stringify(body),
          signal: AbortSignal.timeout(this.timeoutMs)
        })
        if (!response.ok) throw Object.assign(new Error(`HTTP ${response.status}`), { status: response.status })
        return await response.json()
      } catch (error) {
        if (attempt === 3) throw error
      }
    }
  }

  async * events (after) {
    const { url, apiKey } = this
    const headers = { Authorization: `Bearer ${apiKey}`, Accept: 'text/event-stream' }
    const response = await fetch(`${url}/events?after=${after}`, { headers })
    let text = ''
    for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
      const events = (text + chunk).split('\n\n')
      text = events.pop()
      for (const event of events) {
        const [, data] = /^data: (.*)$/m.exec(event) ?? []
        if (data !== undefined) yield JSON.parse(data)
      }
    }
  }
}

await serve((options) => new Petstore(options), {
  getPet: async (store, { petId }) => await store.call('GET', `/pets/${petId}`),
  refreshPet: async (store, { petId }) => await store.call('GET', `/pets/${petId}`),
  listPets: async (store) => (await store.call('GET', '/pets')).map(({ id }) => id),
  placeOrder: async (store, order) => await store.call('POST', '/store/orders', order),

  async appendToName (store, { petId, text }) {
    const { name } = await store.call('GET', `/pets/${petId}`)
    return await store.call('PATCH', `/pets/${petId}`, { name: name + text })
  },

  async followEvents (store, { after, count }) {
    const ids = []
    for await (const { id } of store.events(after)) {
      if (ids.push(id) === count) break
    }
    return ids
  },

  async receiveWebhooks () {
    const receiver = createServer(async (request, response) => {
      let body = ''
      for await (const chunk of request) body += chunk
      received.push(JSON.parse(body).id)
      response.end()
    })
    await new Promise((resolve) => { receiver.listen(0, '127.0.0.1', resolve) })
    return { url: `http://127.0.0.1:${receiver.address().port}/` }
  },

  changeSecret: async () => {},
  receivedEvents: async () => received
})
