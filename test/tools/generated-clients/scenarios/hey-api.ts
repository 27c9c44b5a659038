import { Webhook } from 'standardwebhooks'
import { createClient } from '../generated/hey-api/client'
import * as api from '../generated/hey-api'
import { nextCursor, required, type Scenario } from './scenario.ts'

const scenario: Scenario = async ({ url, receiverUrl, nextDelivery }) => {
  const opened = await api.createAccount({ client: createClient({ baseUrl: url }), body: { name: 'A store' } })
  const { apiKey } = required(opened.data, opened.error)
  const client = createClient({ baseUrl: url, auth: apiKey })

  const names = ['Dogs', 'Cats', 'Birds']
  const ids = []
  for (const name of names) {
    const created = await api.createCategory({ client, body: { name } })
    ids.push(required(created.data, created.error).id)
  }
  const body = { name: 'Rex', categoryId: required(ids[0], ids) }
  const created = await api.createPet({ client, body, headers: { 'Idempotency-Key': 'a-pet' } })
  const pet = required(created.data, created.error)
  await api.updateInventory({ client, path: { petId: pet.id }, body: { quantity: 3 } })
  await api.placeOrder({ client, body: { petId: pet.id, quantity: 2 } })
  const stock = await api.getInventoryItem({ client, path: { petId: pet.id } })

  const refused = await api.placeOrder({ client, body: { petId: pet.id, quantity: 2 } })
  let conflict = 'none'
  if (refused.error !== undefined) {
    // @ts-expect-error -- the codes are a closed list
    if (refused.error.code === 'out_of_stock') throw new Error(refused.error.message)
    if (refused.error.code === 'insufficient_stock') conflict = refused.error.code
  }

  const pages = []
  let cursor: string | undefined
  do {
    const page = await api.listCategories({ client, query: { limit: 2, ...cursor === undefined ? {} : { cursor } } })
    pages.push(required(page.data, page.error).map(({ name }) => name))
    cursor = nextCursor(required(page.response, page.error).headers)
  } while (cursor !== undefined)

  const feed = await api.listEvents({ client, query: { after: 3 } })
  const events = []
  for (const event of required(feed.data as api.Event[] | undefined, feed.error)) {
    events.push(event.type === 'order.placed' ? `${event.type} ${event.data.order.quantity}` : event.type)
  }

  const webhook = await api.createWebhook({ client, body: { url: receiverUrl, events: ['message.created'] } })
  await api.createMessage({ client, body: { message: 'Hello' } })
  const delivery = await nextDelivery()
  const { secret } = required(webhook.data, webhook.error)
  const event = new Webhook(secret).verify(delivery.body, delivery.headers) as api.Event
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
