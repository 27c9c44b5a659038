// The adapter of a client that hey-api generates, with responses that Zod validates. It uses what the client offers, and
// builds nothing that it lacks: it repeats no request, follows no stream and verifies no webhook.

import * as api from './generated/hey-api-zod'
import { createClient } from './generated/hey-api-zod/client'
import { serve } from './serve.mjs'

const cache = new Map()

function connect ({ url, apiKey, timeoutMs }) {
  return createClient({
    baseUrl: url,
    auth: apiKey,
    fetch: (request) => fetch(request, { signal: AbortSignal.timeout(timeoutMs) })
  })
}

function required ({ data, error, response }) {
  if (data !== undefined) return data
  const text = error?.message ?? `HTTP ${response?.status}`
  throw Object.assign(new Error(text), { status: response?.status, code: error?.code })
}

await serve(connect, {
  async getPet (client, path) {
    return required(await api.getPet({ client, path }))
  },

  async refreshPet (client, path) {
    const known = cache.get(path.petId)
    const headers = known && { 'If-None-Match': known.etag }
    const answer = await api.getPet({ client, path, headers })
    if (answer.response?.status === 304) return known.pet
    cache.set(path.petId, { pet: required(answer), etag: answer.response.headers.get('etag') })
    return answer.data
  },

  async listPets (client) {
    const ids = []
    let cursor
    do {
      const page = await api.listPets({ client, query: { limit: 100, cursor } })
      ids.push(...required(page).map(({ id }) => id))
      const [, next] = /<([^>]+)>; rel="next"/.exec(page.response.headers.get('link')) ?? []
      cursor = next && new URL(next, 'http://localhost').searchParams.get('cursor')
    } while (cursor !== undefined)
    return ids
  },

  async placeOrder (client, body) {
    return required(await api.placeOrder({ client, body }))
  },

  async appendToName (client, { petId, text }) {
    const path = { petId }
    for (;;) {
      const read = await api.getPet({ client, path })
      const { name } = required(read)
      const headers = { 'If-Match': read.response.headers.get('etag') }
      const change = await api.updatePet({ client, path, headers, body: { name: name + text } })
      if (change.response?.status !== 412) return required(change)
    }
  }
})
