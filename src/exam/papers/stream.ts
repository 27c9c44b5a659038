import { setTimeout as sleep } from 'node:timers/promises'
import type { RecordedRequest } from '../../client/client.ts'
import type { TaskAnswer } from '../client-process.ts'
import { definePaper, type Finding } from '../paper.ts'
import { requestsOf, shown } from '../recorded-requests.ts'
import { alongside } from './alongside.ts'

/** The events of the first task, which the stream sends in several parts. */
const EVENTS = 30

/** Where each of the first streams is cut: within an event, after some. */
const CUT_BYTES = 1_500
const CUTS = 3

/** Events of the second task. */
const LATER_EVENTS = 3

/** Longer than the service keeps events. */
const RETENTION_DAYS = 31

/** Pause between two events that happen while the client follows, in ms. */
const EVENT_MS = 50

interface Evidence {
  keyId: number
  resumed: TaskAnswer
  /** The position with which the second task begins, and the oldest event that the service then has. */
  expired: number
  oldest: number
  restarted: TaskAnswer
}

export const stream = definePaper<Evidence>({
  name: 'stream',
  goodClient: 'resumes a stream that was cut after the last event that it handled, misses and repeats none, and ' +
    'starts again when its position has expired (410)',
  async sit ({ store, admit }) {
    const client = await admit()
    for (let i = 1; i <= EVENTS; i++) await store.createCategory({ name: `Dogs ${i}` })
    await client.meets({ type: 'truncate', bytes: CUT_BYTES }, { operation: 'listEvents', times: CUTS })
    const resumed = await client.ask('followEvents', { after: 0, count: EVENTS })

    await store.advanceClock({ seconds: RETENTION_DAYS * 86_400 })
    const expired = EVENTS
    const [first] = await store.listEvents({ limit: 1 })
    const follow = client.ask('followEvents', { after: expired, count: LATER_EVENTS })
    const [restarted] = await alongside(follow, async (signal) => {
      while (!signal.aborted) {
        await store.createCategory({ name: 'Cats' })
        await sleep(EVENT_MS)
      }
    })
    return { keyId: client.keyId, resumed, expired, oldest: first!.id, restarted }
  },
  judge ({ keyId, resumed, expired, oldest, restarted }, journal) {
    const requests = requestsOf(journal, { keyId })
    const gone = requests.findIndex(({ status }) => status === 410)
    const ofFirst = gone < 0 ? requests : requests.slice(0, gone)
    return [
      ...judgeEvents(resumed, 1, EVENTS, ofFirst),
      ...gone < 0
        ? [{ text: `The client did not ask for the events after ${expired}, which have expired.`, requests }]
        : judgeEvents(restarted, oldest, LATER_EVENTS, requests.slice(gone))
    ]
  }
})

/** Judges whether a result is the ids of events one after another, of which none is older than the first. */
function judgeEvents (answer: TaskAnswer, first: number, count: number, requests: RecordedRequest[]): Finding[] {
  if (!answer.ok) return [{ text: `The client did not follow the events: ${answer.error.text}`, requests }]
  const { result: ids } = answer
  if (!isListOfIds(ids)) {
    return [{ text: `The result is no list of ids of events: ${shown(ids)}`, requests }]
  }
  const twice = ids.find((id, i) => ids.indexOf(id) < i)
  if (twice !== undefined) return [{ text: `The client handled event ${twice} twice: ${ids.join(', ')}.`, requests }]
  const gap = ids.findIndex((id, i) => i > 0 && id !== ids[i - 1]! + 1)
  if (gap > 0) {
    return [{ text: `After event ${ids[gap - 1]} the client handled event ${ids[gap]}: ${ids.join(', ')}.`, requests }]
  }
  if (ids.length < count) return [{ text: `The client handled ${ids.length} events in place of ${count}.`, requests }]
  return ids[0]! < first || (first === 1 && ids[0] !== 1)
    ? [{ text: `The client began with event ${ids[0]}; the first one is ${first}.`, requests }]
    : []
}

function isListOfIds (value: unknown): value is number[] {
  return Array.isArray(value) && value.every((id) => typeof id === 'number')
}
