// The adapter of openapi-fetch, whose types openapi-typescript generates. It uses what the client offers, and builds
// nothing that it lacks: it repeats no request, follows no stream and verifies no webhook.

import createClient from 'openapi-fetch'
import { serve } from './serve.mjs'

const cache = new Map()

function connect ({ url, apiKey, timeoutMs }) {
  return createClient({
    baseUrl: url,
    headers: { Authorization: `Bearer ${apiKey}` },
    fetch: (request) => fetch(request, { signal: AbortSignal.timeout(timeoutMs) })
  })
}

function required ({ data, error, response }) {
  if (data !== undefined) return data
  throw Object.assign(new Error(error?.message ?? `HTTP ${response.status}`), { status: response.status, code: error?.code })
}

await serve(connect, {
  async getPet (store, path) {
    return required(await store.GET('/pets/{petId}', { params: { path } }))
  },

  async refreshPet (store, path) {
    const known = cache.get(path.petId)
    const header = known && { 'If-None-Match': known.etag }
    const answer = await store.GET('/pets/{petId}', { params: { path, header } })
    if (answer.response.status === 304) return known.pet
    cache.set(path.petId, { pet: required(answer), etag: answer.response.headers.get('etag') })
    return answer.data
  },

  async listPets (store) {
    const ids = []
    let cursor
    do {
      const page = await store.GET('/pets', { params: { query: { limit: 100, cursor } } })
      ids.push(...required(page).map(({ id }) => id))
      const [, next] = /<([^>]+)>; rel="next"/.exec(page.response.headers.get('link')) ?? []
      cursor = next && new URL(next, 'http://localhost').searchParams.get('cursor')
    } while (cursor !== undefined)
    return ids
  },

  async placeOrder (store, body) {
    return required(await store.POST('/store/orders', { body }))
  },

  async appendToName (store, { petId, text }) {
    const path = { petId }
    for (;;) {
      const read = await store.GET('/pets/{petId}', { params: { path } })
      const { name } = required(read)
      const header = { 'If-Match': read.response.headers.get('etag') }
      const change = await store.PATCH('/pets/{petId}', { params: { path, header }, body: { name: name + text } })
      if (change.response.status !== 412) return required(change)
    }
  }
})
