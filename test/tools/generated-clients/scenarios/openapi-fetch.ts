import createClient from 'openapi-fetch'
import { Webhook } from 'standardwebhooks'
import type { components, paths } from '../generated/openapi-fetch/api.ts'
import { nextCursor, required, type Scenario } from './scenario.ts'

type Event = components['schemas']['Event']

const scenario: Scenario = async ({ url, receiverUrl, nextDelivery }) => {
  const stranger = createClient<paths>({ baseUrl: url })
  const opened = await stranger.POST('/accounts', { body: { name: 'A store' } })
  const { apiKey } = required(opened.data, opened.error)
  const store = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${apiKey}` } })

  const names = ['Dogs', 'Cats', 'Birds']
  const ids = []
  for (const name of names) {
    const created = await store.POST('/categories', { body: { name } })
    ids.push(required(created.data, created.error).id)
  }
  const body = { name: 'Rex', categoryId: required(ids[0], ids) }
  const created = await store.POST('/pets', { body, params: { header: { 'Idempotency-Key': 'a-pet' } } })
  const pet = required(created.data, created.error)
  await store.PATCH('/inventory/{petId}', { params: { path: { petId: pet.id } }, body: { quantity: 3 } })
  await store.POST('/store/orders', { body: { petId: pet.id, quantity: 2 } })
  const stock = await store.GET('/inventory/{petId}', { params: { path: { petId: pet.id } } })

  const refused = await store.POST('/store/orders', { body: { petId: pet.id, quantity: 2 } })
  let conflict = 'none'
  if (refused.error !== undefined) {
    // @ts-expect-error -- the codes are a closed list
    if (refused.error.code === 'out_of_stock') throw new Error(refused.error.message)
    if (refused.error.code === 'insufficient_stock') conflict = refused.error.code
  }

  const pages = []
  let cursor: string | undefined
  do {
    const query = { limit: 2, ...cursor === undefined ? {} : { cursor } }
    const page = await store.GET('/categories', { params: { query } })
    pages.push(required(page.data, page.error).map(({ name }) => name))
    cursor = nextCursor(page.response.headers)
  } while (cursor !== undefined)

  const feed = await store.GET('/events', { params: { query: { after: 3 } } })
  const events = []
  for (const event of required(feed.data as Event[] | undefined, feed.error)) {
    events.push(event.type === 'order.placed' ? `${event.type} ${event.data.order.quantity}` : event.type)
  }

  const webhook = await store.POST('/webhooks', { body: { url: receiverUrl, events: ['message.created'] } })
  await store.POST('/messages', { body: { message: 'Hello' } })
  const delivery = await nextDelivery()
  const { secret } = required(webhook.data, webhook.error)
  const event = new Webhook(secret).verify(delivery.body, delivery.headers) as Event
  const delivered = event.type === 'message.created' ? event.data.message.message : event.type
  return {
    pet: { name: pet.name, status: pet.status },
    stock: required(stock.data, stock.error).quantity,
    conflict,
    pages,
    events,
    delivered
  }
}

export default scenario
