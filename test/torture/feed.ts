import { isDeepStrictEqual } from 'node:util'
import { setTimeout as sleep } from 'node:timers/promises'
import { copied, listed, mirror, walkEvents, walkStore } from '../support/mirror.ts'
import { openStream } from '../support/stream.ts'
import type { Reply } from './client.ts'
import type { Stage, Store } from './harness.ts'

/** The last events reach every follower within this, in ms. */
const FOLLOWED_MS = 20_000

/**
 * Follows a store while others write: a follower at each port that reads the stream, and one that comes in
 * the middle, reads where the feed stands and walks the lists. `compare` holds what each of them believes
 * against what the lists show once the writing has ended.
 */
export async function followFeed ({ client, key }: Store, ports: number[], { report, atEnd }: Stage): Promise<{ compare: () => Promise<void> }> {
  const get = async (path: string): Promise<Reply> => await client.send({ method: 'GET', path })
  const streams = await Promise.all(ports.map(async (port) => await openStream({ port }, { key })))
  for (const stream of streams) atEnd(stream.close)
  const joining = (async () => {
    await sleep(500)
    const after = Number((await get('/events?limit=1')).headers['event-id'])
    return { after, lists: await walkStore(get) }
  })()
  joining.catch(() => {})

  return {
    async compare () {
      const { after, lists } = await joining
      const [truth, listedEvents] = [await walkStore(get), await walkEvents(get, 0)]
      const events = new Map([['the list of events', listedEvents]])
      for (const [i, stream] of streams.entries()) {
        await stream.until(listedEvents.length, FOLLOWED_MS)
        events.set(`the stream of process ${i + 1}`, stream.events)
      }
      for (const [name, followed] of events) {
        const wrong = followed.findIndex(({ id }, i) => id !== i + 1)
        if (wrong >= 0) report.violations.push(`${name} has event ${followed[wrong]!.id} where ${wrong + 1} belongs`)
        if (!isDeepStrictEqual(listed(mirror(followed)), truth)) report.violations.push(`${name}, replayed from nothing, does not rebuild the store`)
      }
      if (!isDeepStrictEqual(listed(mirror(listedEvents.slice(after), copied(lists))), truth)) report.violations.push(`the lists walked at event ${after}, followed from there, do not end as the store`)
      report.notes.push(`${listedEvents.length} events, followed in ${ports.length} processes and from event ${after} on`)
    }
  }
}

/** Writes that the books know nothing of: categories come, change and go, pets are held by hand. */
export async function restless ({ client, pets }: Store, end: number): Promise<void> {
  for (let i = 0; Date.now() < end; i++) {
    const { body: category } = await client.send({ method: 'POST', path: '/categories', body: { name: `brief ${i}` } })
    await client.send({ method: 'PATCH', path: `/categories/${category.id}`, body: { description: 'soon gone' } })
    if (i % 2 === 0) await client.send({ method: 'DELETE', path: `/categories/${category.id}` })
    await client.send({ method: 'PATCH', path: `/pets/${pets[i % pets.length]}`, body: { status: i % 4 < 2 ? 'pending' : 'available' } })
  }
}
