import type { Test } from 'tap'
import { startApp, type Client, type TestApp } from './app.ts'
import { eventually, openReceiver, type Receiver } from './receiver.ts'

/** Settings of a service that delivers, also to this machine. */
export const DELIVERING = { DELIVERY: 'true', WEBHOOKS_ALLOW_PRIVATE: 'true' }

export interface Subscription { service: TestApp, ada: Client, receiver: Receiver, path: string, secret: string }

export interface Backlog extends Subscription { ids: string[], deliver: () => Promise<TestApp> }

/** Starts a service that delivers, opens a store, and registers a receiver as its webhook. */
export async function subscribed (
  t: Test, fields: object = {}, settings: Record<string, string> = DELIVERING
): Promise<Subscription> {
  const service = await startApp(t, settings)
  const ada = await service.openAccount()
  const receiver = await openReceiver(t)
  const { body: { id, secret } } = await ada.post('/webhooks', { url: receiver.url, ...fields })
  receiver.secrets = [secret]
  return { service, ada, receiver, path: `/webhooks/${id}`, secret }
}

/** As `subscribed`, but with a number of messages that wait until the test calls `deliver`. */
export async function backlog (t: Test, messages: number): Promise<Backlog> {
  const before = await subscribed(t, { events: ['message.created'] }, { ...DELIVERING, DELIVERY: 'false' })
  const ids = await Promise.all(Array.from({ length: messages }, async (_, i) => await send(before.ada, `${i}`)))
  const { DATABASE_URL } = before.service.config
  return { ...before, ids, deliver: async () => await startApp(t, { ...DELIVERING, DATABASE_URL }) }
}

export async function send (client: Client, message = 'Hello'): Promise<string> {
  return (await client.post('/messages', { message })).body.id
}

/** Returns the last attempts to deliver to a webhook. */
export async function attemptsOf (client: Client, path: string): Promise<any[]> {
  return (await client.get(`${path}/attempts`)).body
}

export async function becomes (client: Client, id: string, status: string, ms?: number): Promise<void> {
  await eventually(async () => (await client.get(`/messages/${id}`)).body.status === status, ms,
    () => `message ${id} does not become ${status}`)
}
