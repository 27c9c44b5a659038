import { Webhook } from 'standardwebhooks'
import * as api from '../generated/orval/fetch.ts'
import * as schemas from '../generated/orval/zod.ts'
import { nextCursor, required, type Scenario } from './scenario.ts'

// The address of the service comes from `servers` of the document.
const scenario: Scenario = async ({ receiverUrl, nextDelivery }) => {
  const opened = await api.createAccount({ name: 'A store' })
  if (opened.status !== 201) throw new Error(opened.data.code)
  const { apiKey } = schemas.CreateAccountResponse.parse(opened.data)
  const options = { headers: { Authorization: `Bearer ${apiKey}` } }

  const names = ['Dogs', 'Cats', 'Birds']
  const ids = []
  for (const name of names) {
    const created = await api.createCategory({ name }, options)
    if (created.status !== 201) throw new Error(created.data.code)
    ids.push(created.data.id)
  }
  const body = schemas.CreatePetBody.parse({ name: 'Rex', categoryId: required(ids[0], ids) })
  const created = await api.createPet(body, { headers: { ...options.headers, 'Idempotency-Key': 'a-pet' } })
  if (created.status !== 201) throw new Error(created.data.code)
  const pet = schemas.CreatePetResponse.parse(created.data)
  await api.updateInventory(pet.id, { quantity: 3 }, options)
  await api.placeOrder({ petId: pet.id, quantity: 2 }, options)
  const stock = await api.getInventoryItem(pet.id, options)
  if (stock.status !== 200) throw new Error(`status ${stock.status}`)

  const refused = await api.placeOrder({ petId: pet.id, quantity: 2 }, options)
  let conflict = 'none'
  if (refused.status === 409) {
    // @ts-expect-error -- the codes are a closed list
    if (refused.data.code === 'out_of_stock') throw new Error(refused.data.message)
    if (refused.data.code === 'insufficient_stock') conflict = refused.data.code
  }

  const pages = []
  let cursor: string | undefined
  do {
    const page = await api.listCategories({ limit: 2, ...cursor === undefined ? {} : { cursor } }, options)
    if (page.status !== 200) throw new Error(`status ${page.status}`)
    pages.push(schemas.ListCategoriesResponse.parse(page.data).map(({ name }) => name))
    cursor = nextCursor(page.headers)
  } while (cursor !== undefined)

  const feed = await api.listEvents({ after: 3 }, options)
  if (feed.status !== 200) throw new Error(`status ${feed.status}`)
  const events = []
  for (const event of feed.data as api.Event[]) {
    events.push(event.type === 'order.placed' ? `${event.type} ${event.data.order.quantity}` : event.type)
  }

  const webhook = await api.createWebhook({ url: receiverUrl, events: ['message.created'] }, options)
  if (webhook.status !== 201) throw new Error(webhook.data.code)
  await api.createMessage({ message: 'Hello' }, options)
  const delivery = await nextDelivery()
  const event = new Webhook(webhook.data.secret).verify(delivery.body, delivery.headers) as api.Event
  const delivered = event.type === 'message.created' ? event.data.message.message : event.type
  return { pet: { name: pet.name, status: pet.status }, stock: stock.data.quantity, conflict, pages, events, delivered }
}

export default scenario
