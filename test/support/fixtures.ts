import type { Answer, Client } from './app.ts'

/** What tests need before they begin. Each throws when the store will not have it. */

export async function newCategory (client: Client, name = 'Dogs'): Promise<number> {
  return done(await client.post('/categories', { name })).id
}

/** A pet, in a category of its own unless one is named. */
export async function newPet (
  client: Client,
  fields: { name?: string, categoryId?: number, status?: string } = {}
): Promise<number> {
  const categoryId = fields.categoryId ?? (await newCategory(client))
  return done(await client.post('/pets', { name: 'Rex', ...fields, categoryId })).id
}

export async function count (client: Client, petId: number, quantity: number): Promise<void> {
  done(await client.patch(`/inventory/${petId}`, { quantity }))
}

/** A pet with units. */
export async function stocked (client: Client, quantity: number): Promise<number> {
  const petId = await newPet(client)
  await count(client, petId, quantity)
  return petId
}

export async function newOrder (client: Client, petId: number, quantity = 1, complete = false): Promise<number> {
  return done(await client.post('/store/orders', { petId, quantity, complete })).id
}

export async function setStatus (client: Client, petId: number, status: string): Promise<void> {
  done(await client.patch(`/pets/${petId}`, { status }))
}

/** A pet as its list shows it, without the deprecated read. */
export async function petOf (
  client: Client,
  petId: number
): Promise<{ id: number, name: string, categoryId: number, status: string }> {
  return done(await client.get(`/pets?id=${petId}`))[0]
}

export async function itemOf (
  client: Client,
  petId: number
): Promise<{ petId: number, quantity: number, status: string }> {
  return done(await client.get(`/inventory/${petId}`))
}

export async function newWebhook (client: Client, url = 'https://example.com/'): Promise<number> {
  return done(await client.post('/webhooks', { url })).id
}

function done ({ status, text, body }: Answer): any {
  if (status >= 300) throw new Error(`the store answers ${status}: ${text}`)
  return body
}
