import t from 'tap'
import { startApp, type Client } from '../support/app.ts'
import { attemptsOf, becomes, DELIVERING, send, subscribed } from '../support/delivery.ts'

const CREATED = { events: ['message.created'] }

async function restore (client: Client, snapshot: number): Promise<void> {
  const { status, text } = await client.post(`/lab/snapshots/${snapshot}/restore`, undefined)
  if (status !== 200) throw new Error(text)
}

t.test('a restored message ends as its deliveries did', async (t) => {
  const { ada, receiver, path } = await subscribed(t, CREATED)

  /** Sends a message whose first attempt fails, and takes a snapshot while the delivery waits for its retry. */
  async function processing (): Promise<{ id: string, snapshot: number, before: string }> {
    receiver.respond = (response) => { response.writeHead(500).end() }
    const id = await send(ada)
    await becomes(ada, id, 'processing')
    const { body: { id: snapshot } } = await ada.post('/lab/snapshots', {})
    return { id, snapshot, before: (await ada.get(`/messages/${id}`)).text }
  }

  async function retry (status: number): Promise<void> {
    receiver.respond = (response) => { response.writeHead(status).end() }
    await ada.post('/lab/clock/advance', { seconds: 3_600 })
  }

  /** Returns the types of the events since the last restore. */
  async function sinceRestore (): Promise<string[]> {
    const { body: events } = await ada.get('/events?limit=100')
    const types: string[] = events.map(({ type }: { type: string }) => type)
    return types.slice(types.lastIndexOf('store.replaced'))
  }

  await t.test('delivered, when the receiver accepted it after the snapshot', async (t) => {
    const { id, snapshot } = await processing()
    await retry(204)
    await becomes(ada, id, 'delivered')
    const stale = (await ada.get(`/messages/${id}`)).headers.etag
    await restore(ada, snapshot)
    const read = await ada.get(`/messages/${id}`)
    t.equal(read.body.status, 'delivered')
    t.not(read.headers.etag, stale, 'with an entity tag of its own')
    t.same(await sinceRestore(), ['store.replaced', 'message.delivered'])
  })

  await t.test('unchanged, while a delivery waits, and then as that delivery ends', async (t) => {
    const { id, snapshot, before } = await processing()
    await restore(ada, snapshot)
    t.equal((await ada.get(`/messages/${id}`)).text, before)
    t.same(await sinceRestore(), ['store.replaced'])
    await retry(204)
    await becomes(ada, id, 'delivered')
  })

  await t.test('delivered, when its deliveries were dropped with the message', async (t) => {
    const { id, snapshot } = await processing()
    await ada.post('/lab/reset', {})
    const calls = receiver.received.length
    await retry(204)
    await restore(ada, snapshot)
    t.equal((await ada.get(`/messages/${id}`)).body.status, 'delivered')
    t.equal(receiver.received.length, calls, 'nothing is sent for it')
  })

  await t.test('failed, when its webhook was gone', async (t) => {
    const { id, snapshot } = await processing()
    await retry(410)
    await becomes(ada, id, 'failed')
    await restore(ada, snapshot)
    t.equal((await ada.get(`/messages/${id}`)).body.status, 'failed')
    t.same((await sinceRestore()).slice(0, 2), ['store.replaced', 'message.failed'])
    t.ok((await attemptsOf(ada, path)).length > 0)
  })
})

t.test('a message that was queued in the snapshot ends as its deliveries did, too', async (t) => {
  const { ada, receiver, service } = await subscribed(t, CREATED, { ...DELIVERING, DELIVERY: 'false' })
  const id = await send(ada)
  const { body: { id: snapshot } } = await ada.post('/lab/snapshots', {})
  t.equal((await ada.get(`/messages/${id}`)).body.status, 'queued')
  receiver.respond = (response) => { response.writeHead(410).end() }
  const { DATABASE_URL } = service.config
  await startApp(t, { ...DELIVERING, DATABASE_URL })
  await becomes(ada, id, 'failed')
  await restore(ada, snapshot)
  t.equal((await ada.get(`/messages/${id}`)).body.status, 'failed')
})
