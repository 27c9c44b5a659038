import { isDeepStrictEqual } from 'node:util'
import { setTimeout as sleep } from 'node:timers/promises'
import { copied, listed, mirror, walkEvents, walkStillStore, walkStore } from '../support/mirror.ts'
import { openStream } from '../support/stream.ts'
import type { Reply } from './client.ts'
import type { ScenarioContext, Store } from './harness.ts'

/** Limits the wait until the last events arrive in every stream. */
const STREAM_TIMEOUT_MS = 20_000

/**
 * Mirrors a store while other clients write. One follower at each port reads the stream. Another one starts later: it
 * reads the current position of the feed and walks the lists. After the last write, `compare` checks each mirror
 * against the lists.
 */
export async function followFeed (
  { client, key }: Store, ports: number[], { report, atEnd }: ScenarioContext
): Promise<{ compare: () => Promise<void> }> {
  const get = async (path: string): Promise<Reply> => await client.send({ method: 'GET', path })
  const streams = await Promise.all(ports.map(async (port) => await openStream({ port }, { key })))
  for (const stream of streams) atEnd(stream.close)
  const laterStart = (async () => {
    await sleep(500)
    const after = Number((await get('/events?limit=1')).headers['event-id'])
    return { after, lists: await walkStore(get) }
  })()
  laterStart.catch(() => {})

  return {
    async compare () {
      const { after, lists } = await laterStart
      const { lists: truth, last } = await walkStillStore(get)
      const listedEvents = (await walkEvents(get, 0)).slice(0, last)
      const events = new Map([['the list of events', listedEvents]])
      for (const [i, stream] of streams.entries()) {
        await stream.until(listedEvents.length, STREAM_TIMEOUT_MS)
        events.set(`the stream of process ${i + 1}`, stream.events.slice(0, last))
      }
      for (const [name, followed] of events) {
        const wrong = followed.findIndex(({ id }, i) => id !== i + 1)
        if (wrong >= 0) report.violations.push(`${name} has event ${followed[wrong]!.id} instead of ${wrong + 1}`)
        if (!isDeepStrictEqual(listed(mirror(followed)), truth)) {
          report.violations.push(`${name}, replayed from the start, does not rebuild the store`)
        }
      }
      if (!isDeepStrictEqual(listed(mirror(listedEvents.slice(after), copied(lists))), truth)) {
        report.violations.push(`the lists at event ${after} and the later events do not rebuild the store`)
      }
      report.notes.push(`${listedEvents.length} events, followed in ${ports.length} processes and after event ${after}`)
    }
  }
}

/** Writes what the ledger does not contain: creates, changes and deletes categories, and sets the status of pets. */
export async function writeOutsideLedger ({ client, pets }: Store, end: number): Promise<void> {
  for (let i = 0; Date.now() < end; i++) {
    const { body: { id } } = await client.send({
      method: 'POST',
      path: '/categories',
      body: { name: `short-lived ${i}` }
    })
    await client.send({ method: 'PATCH', path: `/categories/${id}`, body: { description: 'changed' } })
    if (i % 2 === 0) await client.send({ method: 'DELETE', path: `/categories/${id}` })
    const status = i % 4 < 2 ? 'pending' : 'available'
    await client.send({ method: 'PATCH', path: `/pets/${pets[i % pets.length]}`, body: { status } })
  }
}
