import { Webhook } from 'standardwebhooks'
import * as api from '../generated/kubb/index.ts'
import { nextCursor, required, type Scenario } from './scenario.ts'

const scenario: Scenario = async ({ url: baseURL, receiverUrl, nextDelivery }) => {
  // The generated fetch client does not say that its bodies are JSON.
  const json = { 'Content-Type': 'application/json' }
  const { data: { apiKey } } = await api.createAccount({ name: 'A store' }, { baseURL, headers: json })
  const config = { baseURL, headers: { ...json, Authorization: `Bearer ${apiKey}` } }

  const names = ['Dogs', 'Cats', 'Birds']
  const ids = []
  for (const name of names) ids.push((await api.createCategory({ name }, {}, config)).data.id)
  const body = { name: 'Rex', categoryId: required(ids[0], ids) }
  const { data: pet } = await api.createPet(body, { 'Idempotency-Key': 'a-pet' }, config)
  await api.updateInventory(pet.id, { quantity: 3 }, {}, config)
  await api.placeOrder({ petId: pet.id, quantity: 2 }, {}, config)
  const { data: { quantity: stock } } = await api.getInventoryItem(pet.id, {}, config)

  // The methods return every answer as a success. The type of the error has a name of its own.
  const refused = await api.placeOrder({ petId: pet.id, quantity: 2 }, {}, config)
  let conflict = 'none'
  if (refused.status === 409) {
    const error = refused.data as unknown as api.PlaceOrder409
    // @ts-expect-error -- the codes are a closed list
    if (error.code === 'out_of_stock') throw new Error(error.message)
    if (error.code === 'insufficient_stock') conflict = error.code
  }

  const pages = []
  let cursor: string | undefined
  do {
    const query = { limit: 2, ...cursor === undefined ? {} : { cursor } }
    const page = await api.listCategories(query, {}, config)
    pages.push(page.data.map(({ name }) => name))
    cursor = nextCursor(page.headers)
  } while (cursor !== undefined)

  const feed = await api.listEvents({ after: 3 }, {}, config)
  const events = []
  for (const event of feed.data as api.Event[]) {
    events.push(event.type === 'order.placed' ? `${event.type} ${event.data.order.quantity}` : event.type)
  }

  const { data: { secret } } = await api.createWebhook({ url: receiverUrl, events: ['message.created'] }, config)
  await api.createMessage({ message: 'Hello' }, {}, config)
  const delivery = await nextDelivery()
  const event = new Webhook(secret).verify(delivery.body, delivery.headers) as api.Event
  const delivered = event.type === 'message.created' ? event.data.message.message : event.type
  return { pet: { name: pet.name, status: pet.status }, stock, conflict, pages, events, delivered }
}

export default scenario
